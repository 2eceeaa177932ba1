import type { FilterOf } from './filter.ts'
import { segment } from './json.ts'
import { Listing, type PageAnswer, type PageOptions } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { EntityOf, OrganizationSchema, Owner } from './organization.ts'
import { queryOf } from './query.ts'
import { ndjson } from './stream.ts'
import type { Transport } from './transport.ts'
import type { HistoryPage } from './wire.ts'

type Direction = 'asc' | 'desc'

/** The page and the order of a list. The default order is newest first. */
export type ListOptions = PageOptions & { sorting_type?: Direction } & CallOptions

/** The page and the order of a filter. The default order is newest first. */
export type FilterOptions = PageOptions & {
  sort_direction?: Direction
  /** Refuses a filter by a key that is not declared and that no entity has. Without it, the response has a warning. */
  strict?: boolean
} & CallOptions

/**
 * Selects related entities: their owner, the attribute that links them (default: any), and the direction of the link.
 */
export type RelatedOptions<Target> = ListOptions & {
  target: Target
  attribute_key?: string
  direction?: 'outgoing' | 'incoming' | 'both'
}

/**
 * The options of a read of one entity. `at`, a time of RFC 3339 with its offset or a Date, or `version` returns the entity
 * as a read returned it then, with `as_of`. They take the scope `changes:read` as well.
 */
export type GetOptions = CallOptions & ({ at?: string | Date; version?: never } | { at?: never; version?: number })

/**
 * The options of a history: at most `limit` changes (100 by default, at most 1,000) to versions before `before_version`.
 */
export type HistoryOptions = { before_version?: number; limit?: number } & CallOptions

/** The options of an export. It begins after the entity `after_id`. */
export type ExportOptions = Pick<PageOptions, 'after_id'> & CallOptions

/** The endpoints that read people or the records of one stack. */
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
   * Reads an entity. Its `version` can be passed as `ifMatch`.
   *
   * ```ts
   * const order = await client.stack('orders').get('o-1')
   * console.log(order.attribute_values.total) // 10
   * ```
   *
   * With `at` or `version`, the entity is read as it was:
   *
   * ```ts
   * await client.people.patch('ada', { first_name: 'Augusta' })
   * const before = await client.people.get('ada', { version: 1 })
   * console.log(before.first_name, before.as_of?.version) // Ada 1
   * ```
   */
  get(external_id: string, options?: GetOptions): Promise<EntityOf<S, O>> {
    return this.#get(pathOf(external_id), options)
  }

  /**
   * Reads an entity by its internal identifier: the `id` of a person, the `record_id` of a record.
   *
   * ```ts
   * const { record_id } = await client.stack('orders').get('o-1')
   * console.log((await client.stack('orders').getById(record_id)).external_id) // o-1
   * ```
   */
  getById(id: string, options?: GetOptions): Promise<EntityOf<S, O>> {
    return this.#get(pathOfId(id), options)
  }

  /**
   * Reads the changes of an entity, newest first. If `has_more` is true, older ones follow: pass the `version` of the last
   * item as `before_version`. Takes the scope `changes:read` as well.
   *
   * ```ts
   * await client.people.patch('ada', { language: 'en' })
   * const { items, has_more } = await client.people.history('ada', { limit: 1 })
   * console.log(items[0]?.operation, items[0]?.after, has_more) // update { language: 'en' } true
   * ```
   */
  history(external_id: string, options?: HistoryOptions): Promise<HistoryPage> {
    return this.#history(pathOf(external_id), options)
  }

  /**
   * Reads the changes of an entity by its internal identifier, also those of a deleted one.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * await client.people.delete('ada')
   * const { items } = await client.people.historyById(id)
   * console.log(items.map(change => change.operation).join()) // delete,create
   * ```
   */
  historyById(id: string, options?: HistoryOptions): Promise<HistoryPage> {
    return this.#history(pathOfId(id), options)
  }

  /**
   * Lists all entities, newest first by default.
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
   * Lists the entities that match a filter. An operand of a wrong type is refused. A page has `warnings` if a key is
   * probably misspelt.
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
   * Lists the entities of one owner that are linked to an entity.
   *
   * ```ts
   * for await (const order of client.people.related('ada', { target: 'orders', direction: 'incoming' }))
   *   console.log(order.attribute_values.buyer) // ada
   * ```
   */
  related<T extends Owner<S>>(external_id: string, options: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    return this.#related(`${pathOf(external_id)}/related`, options)
  }

  /**
   * Lists the entities of one owner that are linked to an entity, by its internal identifier.
   *
   * ```ts
   * const { record_id } = await client.stack('orders').get('o-1')
   * const buyers = client.stack('orders').relatedById(record_id, { target: 'people', attribute_key: 'buyer' })
   * for await (const person of buyers) console.log(person.external_id) // ada
   * ```
   */
  relatedById<T extends Owner<S>>(id: string, options: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    return this.#related(`${pathOfId(id)}/related`, options)
  }

  /**
   * Streams a snapshot of all entities over one connection, in order of the internal identifier. Rejects if the
   * connection breaks. An export with `after_id` of the last entity continues after it.
   *
   * ```ts
   * for await (const order of client.stack('orders').export()) console.log(order.external_id) // o-1
   * ```
   */
  export({ after_id, ...options }: ExportOptions = {}): AsyncIterable<EntityOf<S, O>> {
    const request = {
      method: 'POST',
      path: `${this.path}/export${queryOf({ after_id })}`,
      options,
      format: ndjson,
    } as const
    return {
      [Symbol.asyncIterator]: () => this.transport.stream(request) as AsyncGenerator<EntityOf<S, O>, void, undefined>,
    }
  }

  #get(path: string, { at, version, ...options }: GetOptions = {}): Promise<EntityOf<S, O>> {
    return this.#read('GET', path + queryOf({ at, version }), undefined, options)
  }

  #history(path: string, { before_version, limit, ...options }: HistoryOptions = {}): Promise<HistoryPage> {
    return this.#read('GET', `${path}/history${queryOf({ before_version, limit })}`, undefined, options)
  }

  #related<T extends Owner<S>>(path: string, relatedOptions: RelatedOptions<T>): Listing<EntityOf<S, T>> {
    const { target, attribute_key, direction, size, after_id, sorting_type, ...options } = relatedOptions
    const query = { target, attribute_key, direction, sorting_type }
    return this.#listing<T>(path, target, { size, after_id }, query, options)
  }

  /** `owner` is the owner of the returned entities. Its kind of identifier is the cursor. */
  #listing<T extends Owner<S>>(
    path: string,
    owner: string,
    { size, after_id: first }: { size: number | undefined; after_id: string | undefined },
    query: Record<string, unknown>,
    options: CallOptions,
  ): Listing<EntityOf<S, T>> {
    const identifier = owner === 'people' ? 'id' : 'record_id'
    const read = (after_id: string | undefined) => {
      const cursor_configuration = { size, after_id }
      const body = { ...query, cursor_configuration }
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

/** The path of an entity below its collection, by external identifier. */
export const pathOf = (external_id: string): string => `/${segment(external_id)}`
/** The path of an entity below its collection, by internal identifier. */
export const pathOfId = (id: string): string => `/internal/${segment(id)}`
