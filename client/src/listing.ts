import type { Detail } from './wire.ts'

/** One page of a listing. */
export type Page<Item> = {
  items: Item[]
  has_more: boolean
  /** Where the next page begins: give it as `after_id`. Null after the last page. */
  after_id: string | null
  /** Of a filter: its keys that are not declared and that no entity carries. Absent where there are none. */
  warnings?: Detail[]
}

/** How a listing is read: `size` items a request (50 by default, at most 500), after the item of this identifier. */
export type PageOptions = { size?: number; after_id?: string }

/** A page as the service answers it. */
export type PageAnswer<Item> = Omit<Page<Item>, 'after_id'>

/**
 * What a list, a filter or a related read finds. Nothing is asked before it is iterated, and each iteration asks anew.
 *
 * ```ts
 * for await (const person of client.people.list({ size: 200 })) console.log(person.state) // active
 * ```
 */
export class Listing<Item> implements AsyncIterable<Item> {
  readonly #read: (after_id: string | undefined) => Promise<PageAnswer<Item>>
  readonly #identify: (item: Item) => string
  readonly #after_id: string | undefined

  constructor(
    read: (after_id: string | undefined) => Promise<PageAnswer<Item>>,
    identify: (item: Item) => string,
    after_id: string | undefined,
  ) {
    this.#read = read
    this.#identify = identify
    this.#after_id = after_id
  }

  /** Item by item, over all pages; a page is asked for when the one before is used up. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items
  }

  /**
   * Page by page.
   *
   * ```ts
   * for await (const { items } of client.stack('orders').list({ size: 500 }).pages()) console.log(items.length) // 1
   * ```
   */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    let page: Page<Item> | undefined
    do {
      page = await this.#pageAfter(page?.after_id ?? this.#after_id)
      yield page
    } while (page.after_id !== null)
  }

  /**
   * The first page alone, and where the next one begins.
   *
   * ```ts
   * const first = await client.people.list({ size: 1 }).page()
   * const second = await client.people.list({ size: 1, after_id: first.after_id! }).page()
   * console.log(first.has_more, second.has_more) // true false
   * ```
   */
  page(): Promise<Page<Item>> {
    return this.#pageAfter(this.#after_id)
  }

  async #pageAfter(after_id: string | undefined): Promise<Page<Item>> {
    const answer = await this.#read(after_id)
    const { items, has_more } = answer
    const last = items.at(-1)
    return { ...answer, after_id: has_more && last !== undefined ? this.#identify(last) : null }
  }
}
