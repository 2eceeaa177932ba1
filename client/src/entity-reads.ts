import { addressOf, type EntityAddress, idOf } from './address.ts'
import type { FilterOf } from './filter.ts'
import { segment } from './json.ts'
import { Listing, type Page, type PageOptions, pageOf } from './listing.ts'
import { Loader, type Named } from './loader.ts'
import type { Call, CallOptions } from './options.ts'
import type { EntityOf, LinksForm, OrganizationSchema, Owner } from './organization.ts'
import { queryOf } from './query.ts'
import type { FieldName, ItemOf, LabeledOf, RelationshipKey, Selection } from './selection.ts'
import type { Endpoint, Parts, RequestOptions, Transport } from './transport.ts'
import type { Aggregate, AggregateBody, AggregateLine, Change, HistoryPage } from './wire.ts'

type Direction = 'asc' | 'desc'

/** The page and the order of a list. The default order is newest first. */
export type ListOptions = PageOptions & { order?: Direction } & CallOptions

/** The page and the order of a filter. The default order is newest first. */
export type FilterOptions = PageOptions & {
  order?: Direction
  /** Refuses a filter by a key that is not declared and that no entity has. Without it, the response has a warning. */
  strict?: boolean
} & CallOptions

/** Selects related entities: their owner, the linking attribute (default: any), and the direction of the link. */
export type RelatedOptions<Target> = ListOptions & {
  target: Target
  attribute_key?: string
  direction?: 'outgoing' | 'incoming' | 'both'
}

/**
 * The options of a read of one entity. `at`, a time of RFC 3339 with its offset or a Date, or `version` reads the
 * entity at that moment, with `as_of`. They also take the scope `changes:read`. `labels` adds the current names of the
 * entity and of the targets of its relationships. `links: 'id'` shows these targets by their internal identifiers.
 */
export type GetOptions<Labeled extends boolean = boolean, L extends LinksForm = LinksForm> = CallOptions & {
  links?: L
} & (
    | { at?: never; version?: never; labels?: Labeled }
    | { at: string | Date; version?: never; labels?: never }
    | { at?: never; version: number; labels?: never }
  )

/** The options of a history: `size` changes per request, 100 by default, at most 1,000. */
export type HistoryOptions = PageOptions & CallOptions

/**
 * The options of an export. `after` is the internal identifier of the last entity before the export. `links: 'id'`
 * shows the targets of relationships by their internal identifiers.
 */
export type ExportOptions<L extends LinksForm = LinksForm> = Pick<PageOptions, 'after'> & { links?: L } & CallOptions

/** The options of a search: `size` items per request, 20 by default, at most 100, with their names if `labels` is set. */
export type SearchOptions<Labeled extends boolean = boolean> = PageOptions & CallOptions & { labels?: Labeled }

/** The options of a count. `strict` works as in a filter. */
export type CountOptions = Pick<FilterOptions, 'strict'> & CallOptions

/** The number of all matches, with the `sequence` and `warnings` of a {@link Page}. */
export type CountResult = Required<Pick<Page<unknown>, 'count' | 'sequence'>> & Pick<Page<unknown>, 'warnings'>

/** A query of groups of entities: a filter, the fields that group them, and the measures of each group. */
export type AggregateQuery<S extends OrganizationSchema, O extends Owner<S>> = Omit<AggregateBody, 'filter'> & {
  filter?: FilterOf<S, O>
}

/** The endpoints that read people or the records of one stack. */
export class EntityReads<S extends OrganizationSchema, O extends Owner<S>> {
  protected readonly transport: Transport
  protected readonly path: string
  protected readonly send: SendBelow
  readonly #loader: Loader<EntityOf<S, O>> | undefined

  constructor(transport: Transport, owner: O) {
    this.transport = transport
    this.send = createSendBelow(transport, owner)
    this.path = owner === 'people' ? '/v1/people' : `/v1/stacks/${segment(owner)}`
    const { loaders } = transport
    if (!loaders) return
    const reads = {
      one: (address: EntityAddress) => this.#getOne<EntityOf<S, O>>(address, {}),
      many: (named: Named) => this.getMany(named),
    }
    this.#loader = (loaders.get(owner) as Loader<EntityOf<S, O>> | undefined) ?? new Loader(reads)
    loaders.set(owner, this.#loader)
  }

  /**
   * Reads an entity. Its `version` can be passed as `ifMatch`.
   *
   * ```ts
   * const order = await client.stack('orders').get('o-1')
   * console.log(order.attribute_values.total) // 10
   * ```
   *
   * With `at` or `version`, it reads a past state of the entity:
   *
   * ```ts
   * await client.people.patch('ada', { first_name: 'Augusta' })
   * const before = await client.people.get('ada', { version: 1 })
   * console.log(before.first_name, before.as_of?.version) // Ada 1
   * ```
   *
   * With `labels`, the entity has display names:
   *
   * ```ts
   * const labeled = await client.stack('orders').get('o-1', { labels: true })
   * console.log(labeled.label, labeled.relationship_labels.buyer?.ada) // o-1 Ada Lovelace
   * ```
   *
   * With `links`, the targets of its relationships have their internal identifiers:
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * const linked = await client.stack('orders').get('o-1', { links: 'id' })
   * console.log(JSON.stringify(linked.attribute_values.buyer) === JSON.stringify({ id })) // true
   * ```
   */
  get<Labeled extends boolean = false, L extends LinksForm = never>(
    address: EntityAddress,
    options?: GetOptions<Labeled, L>,
  ): Call<LabeledOf<EntityOf<S, O, L>, Labeled>> {
    if (this.#loader && !options) return this.#loader.load(address) as Call<LabeledOf<EntityOf<S, O, L>, Labeled>>
    return this.#getOne(address, options)
  }

  #getOne<Data>(
    address: EntityAddress,
    { at: moment, version, labels, links, ...options }: GetOptions = {},
  ): Call<Data> {
    const { at, params } = addressOf(address)
    return this.send(`GET ${at}`, { params, query: { at: moment, version, labels, links } }, options)
  }

  /**
   * Reads up to 1,000 entities by their external or internal identifiers, in one request. The items are in the order of
   * the identifiers, with null for an entity that does not exist. `fields`, `include`, `labels` and `links` work as in
   * a list.
   *
   * ```ts
   * const { items } = await client.people.getMany({ external_ids: ['ada', 'nobody'] }, { fields: ['last_name'] })
   * console.log(items[0]?.last_name, items[1]) // Lovelace null
   * ```
   */
  getMany<
    Field extends FieldName<S, O> = never,
    Include extends RelationshipKey<S, O> = never,
    Labeled extends boolean = false,
    L extends LinksForm = never,
  >(
    named: Named,
    {
      fields,
      include,
      labels,
      links,
      ...options
    }: CallOptions & Omit<Selection<S, O, Field, Include, Labeled, L>, 'sort' | 'count'> = {},
  ): Call<{ items: (ItemOf<S, O, Field, Include, Labeled, L> | null)[] }> {
    return this.send('POST /get', { body: { ...named, fields, include, labels, links } }, options)
  }

  /**
   * Lists the changes of an entity, newest first. Takes the scope `changes:read` as well.
   *
   * ```ts
   * await client.people.patch('ada', { language: 'en' })
   * const { items, has_more } = await client.people.history('ada', { size: 1 }).page()
   * console.log(items[0]?.operation, items[0]?.after, has_more) // update { language: 'en' } true
   * ```
   */
  history(address: EntityAddress, { size, after, ...options }: HistoryOptions = {}): Listing<Change> {
    const { at, params } = addressOf(address)
    const read = (before_version?: string) =>
      this.send<HistoryPage>(`GET ${at}/history`, { params, query: { before_version, limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ version }) => version!), after)
  }

  /**
   * Lists all entities, newest first by default. `fields` selects members, `include` adds the targets of relationships,
   * `sort` changes the order, and `count` adds the number of all entities to the first page.
   *
   * ```ts
   * for await (const person of client.people.list({ order: 'asc' })) {
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
  list<
    Field extends FieldName<S, O> = never,
    Include extends RelationshipKey<S, O> = never,
    Labeled extends boolean = false,
    L extends LinksForm = never,
  >(
    options: ListOptions & Selection<S, O, Field, Include, Labeled, L> = {},
  ): Listing<ItemOf<S, O, Field, Include, Labeled, L>> {
    const { order, ...rest } = options
    return this.#listing('POST /list', {}, { sorting_type: order }, rest)
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
  filter<
    Field extends FieldName<S, O> = never,
    Include extends RelationshipKey<S, O> = never,
    Labeled extends boolean = false,
    L extends LinksForm = never,
  >(
    filter: FilterOf<S, O>,
    options: FilterOptions & Selection<S, O, Field, Include, Labeled, L> = {},
  ): Listing<ItemOf<S, O, Field, Include, Labeled, L>> {
    const { order, ...rest } = options
    return this.#listing('POST /filter', {}, { filter, sort_direction: order }, rest)
  }

  /**
   * Counts all entities, or those that match a filter. The count is exact, and holds at the change with the number `sequence`.
   *
   * ```ts
   * console.log((await client.people.count({ last_name: { $starts_with: 'H' } })).count) // 1
   * ```
   */
  async count(filter?: FilterOf<S, O>, options: CountOptions = {}): Promise<CountResult> {
    const endpoint = filter === undefined ? 'POST /list' : 'POST /filter'
    const body = { filter, fields: ['external_id'], count: true, cursor_configuration: { size: 1 } }
    const { count, sequence, warnings } = await this.send<CountResult>(endpoint, { body }, options)
    return { count, sequence, ...(warnings && { warnings }) }
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
  search<Labeled extends boolean = false>(
    text: string,
    { size, after, labels, ...options }: SearchOptions<Labeled> = {},
  ): Listing<LabeledOf<EntityOf<S, O>, Labeled>> {
    const read = (cursor?: string) =>
      this.send<Page<LabeledOf<EntityOf<S, O>, Labeled>>>(
        'POST /search',
        { body: { text, size, cursor, labels } },
        options,
      )
    return new Listing(cursor => pageOf(read(cursor), last => idOf(last as EntityOf<S, O>)), after)
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
  aggregate(query: AggregateQuery<S, O>, options?: CallOptions): Call<Aggregate> {
    return this.send('POST /aggregate', { body: query }, options)
  }

  /**
   * Streams any number of groups, whereas `aggregate` has at most 10,000. The last line has no `by` but the totals of
   * all groups.
   *
   * ```ts
   * for await (const line of client.stack('orders').groups({ group_by: ['attribute_values.buyer.first_name'] }))
   *   if ('by' in line) console.log(line.by.join(), line.measures.join()) // Ada 1
   * ```
   */
  groups(query: AggregateQuery<S, O>, options?: CallOptions): AsyncIterable<AggregateLine> {
    return this.transport.lines({ method: 'POST', path: `${this.path}/aggregate`, options, body: query })
  }

  /**
   * Lists the entities of one owner that are linked to an entity.
   *
   * ```ts
   * for await (const order of client.people.related('ada', { target: 'orders', direction: 'incoming' }))
   *   console.log(order.attribute_values.buyer) // ada
   * ```
   */
  related<
    T extends Owner<S>,
    Field extends FieldName<S, T> = never,
    Include extends RelationshipKey<S, T> = never,
    Labeled extends boolean = false,
    L extends LinksForm = never,
  >(
    address: EntityAddress,
    options: RelatedOptions<T> & Selection<S, T, Field, Include, Labeled, L>,
  ): Listing<ItemOf<S, T, Field, Include, Labeled, L>> {
    const { at, params } = addressOf(address)
    const { target, attribute_key, direction, order: sorting_type, ...rest } = options
    return this.#listing(`POST ${at}/related`, params, { target, attribute_key, direction, sorting_type }, rest)
  }

  /**
   * Streams a snapshot of all entities over one connection, in order of the internal identifier. Rejects if the
   * connection breaks. An export `after` the identifier of the last entity continues after it.
   *
   * ```ts
   * for await (const order of client.stack('orders').export()) console.log(order.external_id) // o-1
   * ```
   */
  export<L extends LinksForm = never>({
    after: after_id,
    links,
    ...options
  }: ExportOptions<L> = {}): AsyncIterable<EntityOf<S, O, L>> {
    return this.transport.lines({ method: 'POST', path: `${this.path}/export${queryOf({ after_id, links })}`, options })
  }

  #listing<Item extends object>(
    endpoint: BelowPeople,
    params: Params,
    query: Record<string, unknown>,
    { size, after, fields, include, labels, links, sort, count, ...options }: ListingOptions,
  ): Listing<Item> {
    const read = (position: string | undefined, isFirst: boolean) => {
      const selection = { fields, include, labels, links, sort, count: (count && isFirst) || undefined }
      // With a sort or fields, the position is a cursor; without them, it is the id of the last entity.
      const cursor_configuration = { size, [fields || sort ? 'cursor' : 'after_id']: position }
      return this.send<Page<Item>>(
        endpoint,
        { params, body: { ...query, ...selection, cursor_configuration } },
        options,
      )
    }
    return new Listing((after, isFirst) => pageOf(read(after, isFirst), last => idOf(last as { id: string })), after)
  }
}

/** The endpoints of people, by their method and the path below people. */
type BelowPeople = Endpoint extends infer E
  ? E extends `${infer M} /v1/people${infer P}`
    ? `${M} ${P}`
    : never
  : never

type Params = Readonly<Record<string, string>>

type SendBelow = <Data>(
  endpoint: BelowPeople,
  request: Pick<Parts, 'query' | 'body'> & { params?: Params },
  options: RequestOptions | undefined,
) => Call<Data>

/** Sends requests to the endpoints that people and records share. They are named by the endpoints of people. */
function createSendBelow({ sendAs }: Transport, owner: string): SendBelow {
  if (owner === 'people')
    return (endpoint, request, options) => sendAs(endpoint.replace(' ', ' /v1/people') as Endpoint, request, options)
  return (endpoint, { params, ...request }, options) => {
    const own = endpoint.replace(' ', ' /v1/stacks/{stack_key}').replace('{uuid}', '{record_id}')
    return sendAs(own as Endpoint, { ...request, params: { ...params, stack_key: owner } }, options)
  }
}

type ListingOptions = PageOptions &
  CallOptions & {
    fields?: unknown
    include?: unknown
    labels?: unknown
    links?: LinksForm
    sort?: unknown
    count?: boolean
  }
