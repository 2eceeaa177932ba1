import type { FilterOf } from './filter.ts'
import { segment } from './json.ts'
import { Listing, type PageAnswer, type PageOptions } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { EntityOf, OrganizationSchema, Owner } from './organization.ts'
import type { Transport } from './transport.ts'

type Direction = 'asc' | 'desc'

/** A list's page and order; newest first by default. */
export type ListOptions = PageOptions & { sorting_type?: Direction } & CallOptions

/** A filter's page and order; newest first by default. */
export type FilterOptions = PageOptions & {
  sort_direction?: Direction
  /** Refuses a filter by a key that is not declared and that no entity carries, instead of answering it with a warning. */
  strict?: boolean
} & CallOptions

/** Whose company is asked for: entities of one owner, linked through one attribute or any, one way or both. */
export type RelatedOptions<Target> = ListOptions & {
  target: Target
  attribute_key?: string
  direction?: 'outgoing' | 'incoming' | 'both'
}

/** Where an export begins. */
export type ExportOptions = Pick<PageOptions, 'after_id'> & CallOptions

/** The endpoints that read people, or the records of one stack. */
export class EntityReads<S extends OrganizationSchema, O extends Owner<S>> {
  protected readonly transport: Transport
  protected readonly path: string
  readonly #owner: string

  constructor(transport: Transport, owner: O) {
    this.transport = transport
    this.#owner = owner
    this.path = owner === 'people' ? '/v1/people' : `/v1/stacks/${segment(owner)}`
  }

  /**
   * Reads one. `version` is what `ifMatch` takes.
   *
   * ```ts
   * const order = await client.stack('orders').get('o-1')
   * console.log(order.attribute_values.total) // 10
   * ```
   */
  get(external_id: string, options?: CallOptions): Promise<EntityOf<S, O>> {
    return this.#read('GET', at(external_id), undefined, options)
  }

  /**
   * Reads one by its internal identifier: a person's `id`, a record's `record_id`.
   *
   * ```ts
   * const { record_id } = await client.stack('orders').get('o-1')
   * console.log((await client.stack('orders').getById(record_id)).external_id) // o-1
   * ```
   */
  getById(id: string, options?: CallOptions): Promise<EntityOf<S, O>> {
    return this.#read('GET', atId(id), undefined, options)
  }

  /**
   * All of them, newest first unless told otherwise.
   *
   * ```ts
   * for await (const person of client.people.list({ sorting_type: 'asc' })) {
   *   console.log(person.external_id) // ada
   *   break
   * }
   * ```
   */
  list({ size, after_id, sorting_type, ...options }: ListOptions = {}): Listing<EntityOf<S, O>> {
    return this.#listing<O>('/list', this.#owner, { size, after_id }, { sorting_type }, options)
  }

  /**
   * Those that a filter holds for. A mistyped operand is refused; a page has `warnings` where a key is probably misspelt.
   *
   * ```ts
   * const big = client.stack('orders').filter({ 'attribute_values.total': { $gte: 10 }, state: 'active' })
   * for await (const order of big) console.log(order.external_id) // o-1
   * ```
   */
  filter(
    filter: FilterOf<S, O>,
    { size, after_id, sort_direction, ...options }: FilterOptions = {},
  ): Listing<EntityOf<S, O>> {
    return this.#listing<O>('/filter', this.#owner, { size, after_id }, { filter, sort_direction }, options)
  }

  /**
   * Those of one owner that are linked to this one.
   *
   * ```ts
   * for await (const order of client.people.related('ada', { target: 'orders', direction: 'incoming' }))
   *   console.log(order.attribute_values.buyer) // ada
   * ```
   */
  related<T extends Owner<S>>(external_id: string, options: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    return this.#related(`${at(external_id)}/related`, options)
  }

  /**
   * Those of one owner that are linked to the one of this internal identifier.
   *
   * ```ts
   * const { record_id } = await client.stack('orders').get('o-1')
   * const buyers = client.stack('orders').relatedById(record_id, { target: 'people', attribute_key: 'buyer' })
   * for await (const person of buyers) console.log(person.external_id) // ada
   * ```
   */
  relatedById<T extends Owner<S>>(id: string, options: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    return this.#related(`${atId(id)}/related`, options)
  }

  /**
   * All of them as they stand at one moment, in order of the internal identifier, over one connection. Rejects when that
   * breaks: the rest is what an export `after_id` of the last one gives.
   *
   * ```ts
   * for await (const order of client.stack('orders').export()) console.log(order.external_id) // o-1
   * ```
   */
  export({ after_id, ...options }: ExportOptions = {}): AsyncIterable<EntityOf<S, O>> {
    const after = after_id === undefined ? '' : `?after_id=${encodeURIComponent(after_id)}`
    const request = { path: `${this.path}/export${after}`, options }
    return {
      [Symbol.asyncIterator]: () => this.transport.stream(request) as AsyncGenerator<EntityOf<S, O>, void, undefined>,
    }
  }

  #related<T extends Owner<S>>(path: string, given: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    const { target, attribute_key, direction, size, after_id, sorting_type, ...options } = given
    const question = { target, attribute_key, direction, sorting_type }
    return this.#listing<T>(path, target, { size, after_id }, question, options)
  }

  /** `owner` is whose entities come back, and by whose identifiers the pages go. */
  #listing<T extends Owner<S>>(
    path: string,
    owner: string,
    { size, after_id: first }: { size: number | undefined; after_id: string | undefined },
    question: Record<string, unknown>,
    options: CallOptions,
  ): Listing<EntityOf<S, T>> {
    const identifier = owner === 'people' ? 'id' : 'record_id'
    const read = (after_id: string | undefined) => {
      const cursor_configuration = { size, after_id }
      const body = { ...question, cursor_configuration }
      return this.#read<PageAnswer<EntityOf<S, T>>>('POST', path, body, options)
    }
    return new Listing(read, item => (item as Identified)[identifier]!, first)
  }

  async #read<T>(method: 'GET' | 'POST', path: string, body: unknown, options: CallOptions | undefined): Promise<T> {
    const request = { method, path: this.path + path, body, options, repeatable: true, writes: false }
    return (await this.transport.send(request)) as T
  }
}

type Identified = { id?: string; record_id?: string }

/** The path of one entity below its collection's. */
export const at = (external_id: string): string => `/${segment(external_id)}`
export const atId = (id: string): string => `/internal/${segment(id)}`
