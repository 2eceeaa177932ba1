import { isKithError } from './errors.ts'
import { segment } from './json.ts'
import type { CallOptions } from './options.ts'
import type { Send } from './transport.ts'
import type { ConsoleSession } from './wire.ts'

/** The sessions of the console. The scopes are `access:read` and `access:write`. */
export class SessionEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Lists the sessions that have not ended, newest first.
   *
   * ```ts
   * const [newest] = await client.sessions.list()
   * console.log(newest?.name, newest?.method) // operator code
   * ```
   */
  async list(options?: CallOptions): Promise<ConsoleSession[]> {
    const request = { method: 'GET', path, options, repeatable: true, writes: false } as const
    return ((await this.#send(request)) as { items: ConsoleSession[] }).items
  }

  /**
   * Ends a session. Its cookie is refused within ten seconds.
   *
   * ```ts
   * const [newest] = await client.sessions.list()
   * if (newest) console.log(await client.sessions.revoke(newest.id)) // true
   * ```
   */
  async revoke(id: string, options?: CallOptions): Promise<true> {
    try {
      const request = {
        method: 'DELETE',
        path: `${path}/${segment(id)}`,
        options,
        repeatable: true,
        writes: true,
      } as const
      return (await this.#send(request)) as true
    } catch (error) {
      if (isKithError(error, 'not_found') && error.answerLost) return true
      throw error
    }
  }
}

const path = '/v1/sessions'
