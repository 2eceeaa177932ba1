import type { FilterOf } from './filter.ts'
import { segment } from './json.ts'
import { Listing, type PageAnswer, type PageOptions, type Position } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { EntityOf, OrganizationSchema, Owner } from './organization.ts'
import { queryOf } from './query.ts'
import type { FieldName, ItemOf, RelationshipKey, Selection } from './selection.ts'
import { ndjson } from './stream.ts'
import type { Endpoint, Parts, RequestOptions, Transport } from './transport.ts'
import type { Aggregate, AggregateBody, HistoryPage } from './wire.ts'

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

/** The options of a search: `size` items per request, 20 by default, at most 100, after the page that ended with `next_cursor`. */
export type SearchOptions = { size?: number; cursor?: string } & CallOptions

/** The options of a count. `strict` is that of a filter. */
export type CountOptions = Pick<FilterOptions, 'strict'> & CallOptions

/** A question about groups of entities: which take part, what they are grouped by, and what is measured of each group. */
export type AggregateQuery<S extends OrganizationSchema, O extends Owner<S>> = Omit<AggregateBody, 'filter'> & {
  filter?: FilterOf<S, O>
}

/** The endpoints that read people or the records of one stack. */
export class EntityReads<S extends OrganizationSchema, O extends Owner<S>> {
  protected readonly transport: Transport
  protected readonly path: string
  protected readonly send: SendBelow
  readonly #owner: string

  constructor(transport: Transport, owner: O) {
    this.transport = transport
    this.send = createSendBelow(transport, owner)
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
    return this.#get(named(external_id), options)
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
    return this.#get(identified(id), options)
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
    return this.#history(named(external_id), options)
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
    return this.#history(identified(id), options)
  }

  /**
   * Lists all entities, newest first by default. `fields` returns only parts of them, `include` also the targets of relationships, `sort`
   * another order, and `count` the number of all on the first page.
   *
   * ```ts
   * for await (const person of client.people.list({ sorting_type: 'asc' })) {
   *   console.log(person.external_id) // ada
   *   break
   * }
   * ```
   *
   * ```ts
   * const people = client.people.list({ fields: ['external_id', 'last_name'], sort: { field: 'last_name' } })
   * for await (const { external_id, last_name } of people) {
   *   console.log(external_id, last_name) // grace Hopper
   *   break
   * }
   * ```
   */
  list<Field extends FieldName<S, O> = never, Include extends RelationshipKey<S, O> = never>(
    options: ListOptions & Selection<S, O, Field, Include> = {},
  ): Listing<ItemOf<S, O, Field, Include>> {
    const { sorting_type, ...rest } = options
    return this.#listing('POST /list', {}, this.#owner, { sorting_type }, rest)
  }

  /**
   * Lists the entities that match a filter. An operand of a wrong type is refused. A page has `warnings` if a key is
   * probably misspelt.
   *
   * ```ts
   * const big = client.stack('orders').filter({ 'attribute_values.total': { $gte: 10 }, state: 'active' })
   * for await (const order of big) console.log(order.external_id) // o-1
   * ```
   *
   * ```ts
   * const options = { fields: ['external_id'], include: ['buyer'], count: true } as const
   * const { items, count } = await client.stack('orders').filter({ state: 'active' }, options).page()
   * console.log(count, items[0]?.external_id, items[0]?.included.buyer !== null) // 1 o-1 true
   * ```
   */
  filter<Field extends FieldName<S, O> = never, Include extends RelationshipKey<S, O> = never>(
    filter: FilterOf<S, O>,
    options: FilterOptions & Selection<S, O, Field, Include> = {},
  ): Listing<ItemOf<S, O, Field, Include>> {
    const { sort_direction, ...rest } = options
    return this.#listing('POST /filter', {}, this.#owner, { filter, sort_direction }, rest)
  }

  /**
   * Counts all entities, or those that match a filter. The count is exact, and holds at the change with the number `sequence`.
   *
   * ```ts
   * console.log((await client.people.count({ last_name: { $starts_with: 'H' } })).count) // 1
   * ```
   */
  async count(filter?: FilterOf<S, O>, options: CountOptions = {}): Promise<{ count: number; sequence: number }> {
    const endpoint = filter === undefined ? 'POST /list' : 'POST /filter'
    const body = { filter, fields: ['external_id'], count: true, cursor_configuration: { size: 1 } }
    const { count, sequence } = await this.send<Required<PageAnswer<unknown>>>(endpoint, { body }, options)
    return { count, sequence }
  }

  /**
   * Finds entities by their words, best match first: people by name, email, phone and identifiers, records by their attributes that are
   * declared `searchable`. Every word of the text must be found: exactly, as the beginning of a word, or misspelt.
   *
   * ```ts
   * const { items } = await client.people.search('ada lovlace', { size: 5 }).page()
   * console.log(items.map(person => person.external_id).join()) // ada
   * ```
   */
  search(text: string, { size, cursor, ...options }: SearchOptions = {}): Listing<EntityOf<S, O>> {
    const read = (position: Position) =>
      this.send<PageAnswer<EntityOf<S, O>>>('POST /search', { body: { text, size, ...position } }, options)
    return new Listing(read, () => undefined, { cursor })
  }

  /**
   * Counts and measures groups of entities. Without `measures`, it counts; without `group_by`, there is one group.
   *
   * ```ts
   * const { groups } = await client.stack('orders').aggregate({
   *   group_by: ['attribute_values.buyer'],
   *   measures: [{ op: 'count' }, { op: 'sum', field: 'attribute_values.total' }],
   * })
   * console.log(groups[0]?.by.join(), groups[0]?.measures.join()) // ada 1,10
   * ```
   */
  aggregate(query: AggregateQuery<S, O>, options?: CallOptions): Promise<Aggregate> {
    return this.send('POST /aggregate', { body: query }, options)
  }

  /**
   * Lists the entities of one owner that are linked to an entity.
   *
   * ```ts
   * for await (const order of client.people.related('ada', { target: 'orders', direction: 'incoming' }))
   *   console.log(order.attribute_values.buyer) // ada
   * ```
   */
  related<T extends Owner<S>, Field extends FieldName<S, T> = never, Include extends RelationshipKey<S, T> = never>(
    external_id: string,
    options: RelatedOptions<T> & Selection<S, T, Field, Include>,
  ): Listing<ItemOf<S, T, Field, Include>> {
    return this.#related(named(external_id), options)
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
  relatedById<T extends Owner<S>, Field extends FieldName<S, T> = never, Include extends RelationshipKey<S, T> = never>(
    id: string,
    options: RelatedOptions<T> & Selection<S, T, Field, Include>,
  ): Listing<ItemOf<S, T, Field, Include>> {
    return this.#related(identified(id), options)
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

  #get({ at: address, params }: Address, { at, version, ...options }: GetOptions = {}): Promise<EntityOf<S, O>> {
    return this.send(`GET ${address}`, { params, query: { at, version } }, options)
  }

  #history({ at, params }: Address, { before_version, limit, ...options }: HistoryOptions = {}): Promise<HistoryPage> {
    return this.send(`GET ${at}/history`, { params, query: { before_version, limit } }, options)
  }

  #related<T extends Owner<S>, Field extends FieldName<S, T>, Include extends RelationshipKey<S, T>>(
    { at, params }: Address,
    options: RelatedOptions<T> & Selection<S, T, Field, Include>,
  ): Listing<ItemOf<S, T, Field, Include>> {
    const { target, attribute_key, direction, sorting_type, ...rest } = options
    return this.#listing(`POST ${at}/related`, params, target, { target, attribute_key, direction, sorting_type }, rest)
  }

  /** `owner` is the owner of the returned entities. Its kind of identifier is the position of a page without `next_cursor`. */
  #listing<Item>(
    endpoint: BelowPeople,
    params: Params,
    owner: string,
    query: Record<string, unknown>,
    { size, after_id: firstId, cursor: firstCursor, fields, include, sort, count, ...options }: ListingOptions,
  ): Listing<Item> {
    const identifier = owner === 'people' ? 'id' : 'record_id'
    const read = (position: Position, isFirst: boolean) => {
      const selection = { fields, include, sort, count: (count && isFirst) || undefined }
      const body = { ...query, ...selection, cursor_configuration: { size, ...position } }
      return this.send<PageAnswer<Item>>(endpoint, { params, body }, options)
    }
    return new Listing(read, item => (item as Identified)[identifier], { after_id: firstId, cursor: firstCursor })
  }
}

/** The endpoints of people, by their method and the path below people. */
export type BelowPeople = Endpoint extends infer E
  ? E extends `${infer M} /v1/people${infer P}`
    ? `${M} ${P}`
    : never
  : never

type Params = Readonly<Record<string, string>>

type SendBelow = <Data>(
  endpoint: BelowPeople,
  request: Pick<Parts, 'query' | 'body'> & { params?: Params },
  options: RequestOptions | undefined,
) => Promise<Data>

/** Sends requests to the endpoints that people and records have, which are named by those of people. */
function createSendBelow({ sendAs }: Transport, owner: string): SendBelow {
  if (owner === 'people')
    return (endpoint, request, options) => sendAs(endpoint.replace(' ', ' /v1/people') as Endpoint, request, options)
  return (endpoint, { params, ...request }, options) => {
    const own = endpoint.replace(' ', ' /v1/stacks/{stack_key}').replace('{uuid}', '{record_id}')
    return sendAs(own as Endpoint, { ...request, params: { ...params, stack_key: owner } }, options)
  }
}

type ListingOptions = PageOptions &
  CallOptions & { fields?: unknown; include?: unknown; sort?: unknown; count?: boolean }

type Identified = { id?: string; record_id?: string }

/** The address of an entity below its collection: the template of the path, and its parameters. */
export type Address = ReturnType<typeof named> | ReturnType<typeof identified>

/** The address of an entity by external identifier. */
export const named = (external_id: string) => ({ at: '/{external_id}', params: { external_id } }) as const
/** The address of an entity by internal identifier. */
export const identified = (id: string) => ({ at: '/internal/{uuid}', params: { uuid: id, record_id: id } }) as const
