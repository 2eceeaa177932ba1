import type { CallOptions } from './options.ts'
import type { Send } from './transport.ts'
import type { ErasurePage } from './wire.ts'

/** Selects erasures before an id. A page has 50 by default, at most 500. */
export type ErasureListOptions = { before?: number; limit?: number } & CallOptions

/** The list of the erasures. `client.people` erases. The scope is `people:erase`. */
export class ErasureEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Lists a page of erasures with their certificates, newest first.
   *
   * ```ts
   * const { items, has_more } = await client.erasures.list()
   * console.log(items.length, has_more) // 0 false
   * ```
   */
  list({ before, limit, ...options }: ErasureListOptions = {}): Promise<ErasurePage> {
    return this.#send('GET /v1/erasures', { query: { before, limit } }, options)
  }
}
