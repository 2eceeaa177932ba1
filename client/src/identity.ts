import type { CallOptions } from './options.ts'
import type { Send } from './transport.ts'
import type { DuplicateGroup, DuplicatesBody, DuplicatesPage } from './wire.ts'

/** The options of a search for duplicates: the keys to search `by`, and the `size` of a page (20 by default, at most 100). */
export type DuplicatesOptions = Pick<DuplicatesBody, 'by' | 'size'> & CallOptions

/** The search for people who may be one. The scope is `people:read`. */
export class IdentityEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Iterates the groups of people who share an email, a phone number, or name and date of birth.
   *
   * ```ts
   * await client.people.create({ external_id: 'ada-2', email: 'Twin@example.com' })
   * await client.people.create({ external_id: 'ada-3', email: 'twin@example.com' })
   * for await (const { people, score } of client.identity.duplicates({ by: ['email'] }))
   *   console.log(people.map(person => person.external_id).join(), score) // ada-2,ada-3 0.95
   * ```
   */
  async *duplicates(options: DuplicatesOptions = {}): AsyncGenerator<DuplicateGroup, void, undefined> {
    let position: Pick<DuplicatesBody, 'cursor'> | undefined = {}
    while (position) {
      const { items, next_cursor }: DuplicatesPage = await this.duplicatesPage({ ...options, ...position })
      yield* items
      position = next_cursor === null ? undefined : { cursor: next_cursor }
    }
  }

  /**
   * Reads one page of duplicates. It may have fewer groups than its size, even none, while `has_more` is true.
   *
   * ```ts
   * const { items, next_cursor } = await client.identity.duplicatesPage({ by: ['mobile'], size: 100 })
   * console.log(items.length, next_cursor) // 0 null
   * ```
   */
  async duplicatesPage({ by, size, cursor, ...options }: DuplicatesBody & CallOptions = {}): Promise<DuplicatesPage> {
    const body = { by, size, cursor }
    const path = '/v1/people/duplicates'
    return (await this.#send({
      method: 'POST',
      path,
      body,
      options,
      repeatable: true,
      writes: false,
    })) as DuplicatesPage
  }
}
