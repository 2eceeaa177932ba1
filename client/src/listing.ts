import type { Detail } from './wire.ts'

/** One page of a listing. */
export type Page<Item> = {
  items: Item[]
  has_more: boolean
  /** The cursor of the next page, for `after_id`. Null on the last page. */
  after_id: string | null
  /** The keys of a filter that are not declared and that no entity has. Absent if there are none. */
  warnings?: Detail[]
}

/**
 * The page options: `size` items per request (50 by default, at most 500), after the item with the identifier
 * `after_id`.
 */
export type PageOptions = { size?: number; after_id?: string }

/** A page in the format of the service. */
export type PageAnswer<Item> = Omit<Page<Item>, 'after_id'>

/**
 * The result of a list, a filter or a related read. It sends no request until it is iterated, and each iteration reads
 * again.
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

  /** Iterates the items of all pages. Each page is requested when the one before is consumed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items
  }

  /**
   * Iterates the pages.
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
   * Reads only the first page, which has the cursor of the next one.
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
    const page = await this.#read(after_id)
    const { items, has_more } = page
    const last = items.at(-1)
    return { ...page, after_id: has_more && last !== undefined ? this.#identify(last) : null }
  }
}
