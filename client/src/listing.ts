import type { Detail } from './wire.ts'

/** One page of a listing. */
export type Page<Item> = {
  items: Item[]
  /**
   * Whether another page follows. In some listings a page may have fewer items than its size, even none, before the
   * end.
   */
  has_more: boolean
  /** The value of `after` for the next page. Null on the last page. */
  next: string | null
  /** The number of all matches, with `count`. Iterated pages have it on the first page only. */
  count?: number
  /** The number of the change up to which `count` or a search includes all changes. */
  sequence?: number
  /** The keys of a filter that are not declared and that no entity has. Absent if there are none. */
  warnings?: Detail[]
}

/**
 * The page options of every listing: `size` items per request, and as `after` the `next` of the previous page. The
 * README has the default and the maximum of each listing.
 */
export type PageOptions = { size?: number; after?: string | undefined }

/** Reads the page after a position. The first page of an iteration may have additional members. */
type ReadPage<Item, More> = (after: string | undefined, isFirst: boolean) => Promise<Page<Item> & More>

/**
 * The result of a list, a filter, a related read, a search or a history. It sends no request until it is read, and each
 * iteration reads again. `More` has the members of its pages besides the items.
 *
 * ```ts
 * for await (const person of client.people.list({ size: 200 })) console.log(person.state) // active
 * ```
 */
export class Listing<Item, More = unknown> implements AsyncIterable<Item> {
  readonly #read: ReadPage<Item, More>
  readonly #after: string | undefined

  constructor(read: ReadPage<Item, More>, after?: string) {
    this.#read = read
    this.#after = after
  }

  /** Iterates the items of all pages. Each page is requested when the previous one is consumed. */
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
  async *pages(): AsyncGenerator<Page<Item> & More, void, undefined> {
    let page = await this.page()
    yield page
    while (page.next !== null) {
      page = await this.#read(page.next, false)
      yield page
    }
  }

  /**
   * Reads only the first page. Its `next` leads to the next one.
   *
   * ```ts
   * const first = await client.people.list({ size: 1 }).page()
   * const second = await client.people.list({ size: 1, after: first.next! }).page()
   * console.log(first.has_more, second.has_more) // true false
   * ```
   */
  page(): Promise<Page<Item> & More> {
    return this.#read(this.#after, true)
  }

  /**
   * Reads the items of all pages.
   *
   * ```ts
   * const stacks = await client.schema.stacks.list().all()
   * console.log(stacks.map(stack => stack.key).join()) // orders,visits
   * ```
   */
  async all(): Promise<Item[]> {
    const items: Item[] = []
    for await (const page of this.pages()) items.push(...page.items)
    return items
  }
}

/** A page as the service sends it. */
type SentPage<Item> = { items: Item[]; has_more: boolean; next_cursor?: string | null }

/**
 * The page of a response. The next page begins at its `next_cursor`, or after its last item, whose position
 * `positionOf` returns.
 */
export async function pageOf<Item, Sent extends SentPage<Item>>(
  sent: Promise<Sent & SentPage<Item>>,
  positionOf: (last: Item) => string | number,
): Promise<Omit<Sent, 'next_cursor'> & Page<Item>> {
  const { next_cursor, ...page } = await sent
  const last = page.has_more ? page.items.at(-1) : undefined
  return {
    ...page,
    next: next_cursor === undefined && last !== undefined ? String(positionOf(last)) : (next_cursor ?? null),
  }
}

/** A listing that the service sends as one page. */
export const listingOfAll = <Item>(read: () => Promise<{ items: Item[] }>): Listing<Item> =>
  new Listing(async () => ({ ...(await read()), has_more: false, next: null }))

/** A position that is a number on the wire. */
export const numberOf = (position: string | undefined): number | undefined =>
  position === undefined ? undefined : Number(position)
