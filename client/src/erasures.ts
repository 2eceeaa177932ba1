import { pathOf, pathOfId } from './entity-reads.ts'
import type { CallOptions } from './options.ts'
import { queryOf } from './query.ts'
import type { Request, Send } from './transport.ts'
import type { Erased, ErasureBody, ErasurePage } from './wire.ts'

/** Selects erasures before an id. A page has 50 by default, at most 500. */
export type ErasureListOptions = { before?: number; limit?: number } & CallOptions

/** The erasures of people. The scope is `people:erase`. */
export class ErasureEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Erases a person, existing or deleted, and returns the certificate. It cannot be undone, so `dry_run: true` first tells what
   * would be removed. Asked again, the result is the same. `completed` is false while a very long log is still being erased.
   *
   * ```ts
   * const { certificate, erasure } = await client.erasures.erase('ada', { reason: 'Request of 2026-01-01' })
   * console.log(certificate?.split('.').length, erasure.removed.entities) // 3 1
   * ```
   */
  erase(external_id: string, body: ErasureBody, options?: CallOptions): Promise<Erased> {
    return this.#call('POST', `/v1/people${pathOf(external_id)}/erase`, body, options)
  }

  /**
   * Erases a person by the internal identifier, also one who was deleted.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * const { completed } = await client.erasures.eraseById(id, { reason: 'Request of 2026-01-01' })
   * console.log(completed) // true
   * ```
   */
  eraseById(id: string, body: ErasureBody, options?: CallOptions): Promise<Erased> {
    return this.#call('POST', `/v1/people${pathOfId(id)}/erase`, body, options)
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
    return this.#call('GET', `/v1/erasures${queryOf({ before, limit })}`, undefined, options)
  }

  async #call<T>(method: Request['method'], path: string, body: unknown, options: CallOptions | undefined): Promise<T> {
    // An erasure that is repeated has the same result, so it needs no Idempotency-Key.
    return (await this.#send({ method, path, body, options, repeatable: true, writes: false })) as T
  }
}
