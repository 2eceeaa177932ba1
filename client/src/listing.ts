import type { Detail } from './wire.ts'

/** One page of a listing. */
export type Page<Item> = {
  items: Item[]
  has_more: boolean
  /** The position of the next page, for `after_id`. Null on the last page, and where there is a `next_cursor`. */
  after_id: string | null
  /** The position of the next page, for `cursor`: of a search, and of a list with `sort` or `fields`. Null on the last page. */
  next_cursor?: string | null
  /** The number of all matches, with `count`. Iterated pages have it on the first page only. */
  count?: number
  /** The number of the change that `count` holds at, or that a search knows of. */
  sequence?: number
  /** The keys of a filter that are not declared and that no entity has. Absent if there are none. */
  warnings?: Detail[]
}

/**
 * The page options: `size` items per request (50 by default, at most 500), after the item with the identifier `after_id`, or after the
 * page that ended with `next_cursor`.
 */
export type PageOptions = { size?: number; after_id?: string; cursor?: string }

/** A page in the format of the service. It has no `after_id` if this is the identifier of its last item. */
export type PageAnswer<Item> = Omit<Page<Item>, 'after_id'> & Partial<Pick<Page<Item>, 'after_id'>>

/** Where a page begins. */
export type Position = { after_id?: string | undefined; cursor?: string | undefined }

type ReadPage<Item> = (position: Position, isFirst: boolean) => Promise<PageAnswer<Item>>

/**
 * The result of a list, a filter, a related read or a search. It sends no request until it is iterated, and each iteration reads
 * again.
 *
 * ```ts
 * for await (const person of client.people.list({ size: 200 })) console.log(person.state) // active
 * ```
 */
export class Listing<Item> implements AsyncIterable<Item> {
  readonly #read: ReadPage<Item>
  readonly #identify: (item: Item) => string | undefined
  readonly #first: Position

  constructor(read: ReadPage<Item>, identify: (item: Item) => string | undefined, first: Position) {
    this.#read = read
    this.#identify = identify
    this.#first = first
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
    let page = await this.#pageAt(this.#first, true)
    yield page
    for (let next = nextOf(page); next !== null; next = nextOf(page)) {
      page = await this.#pageAt(next, false)
      yield page
    }
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
    return this.#pageAt(this.#first, true)
  }

  async #pageAt(position: Position, isFirst: boolean): Promise<Page<Item>> {
    const page = await this.#read(position, isFirst)
    if (page.after_id !== undefined) return { ...page, after_id: page.after_id }
    const last = page.has_more && page.next_cursor === undefined ? page.items.at(-1) : undefined
    return { ...page, after_id: last === undefined ? null : (this.#identify(last) ?? null) }
  }
}

function nextOf({ after_id, next_cursor }: Page<unknown>): Position | null {
  if (typeof next_cursor === 'string') return { cursor: next_cursor }
  return after_id === null ? null : { after_id }
}
