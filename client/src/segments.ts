import type { FilterOf } from './filter.ts'
import { segment as encoded } from './json.ts'
import { Listing, type PageAnswer, type PageOptions, type Position } from './listing.ts'
import type { CallOptions, WriteOptions } from './options.ts'
import type { OrganizationSchema } from './organization.ts'
import { queryOf } from './query.ts'
import type { FieldName, ItemOf, RelationshipKey, Selection } from './selection.ts'
import type { Request, Send } from './transport.ts'
import type { NewSegment, Segment, SegmentPatch, WrittenSegment } from './wire.ts'

/** The page and the order of the people of a segment. The default order is newest first. */
export type SegmentPeopleOptions = PageOptions & { sort_direction?: 'asc' | 'desc' } & CallOptions

/** The options of a write of a segment. */
export type SegmentOptions = CallOptions & Pick<WriteOptions, 'idempotencyKey'>

/** The options of a write of a filter. */
export type SegmentFilterOptions = SegmentOptions & {
  /** Refuses a filter by a key that is not declared and that no entity has. Without it, the response has `warnings`. */
  strict?: boolean
}

/** The segments of an organization: filters of people with a name. The scopes are `schema:read` and `schema:write`. */
export class SegmentEndpoints<S extends OrganizationSchema> {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Creates a segment. Filters name it as `{ $segment: key }`.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * for await (const person of client.people.filter({ $segment: 'hoppers' })) console.log(person.external_id) // grace
   * ```
   */
  create(
    body: Omit<NewSegment, 'filter'> & { filter: FilterOf<S, 'people'> },
    options?: SegmentFilterOptions,
  ): Promise<WrittenSegment> {
    return this.#write('POST', '', body, options, false)
  }

  /**
   * Lists all segments.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * console.log((await client.segments.list()).map(segment => segment.key).join()) // hoppers
   * ```
   */
  async list(options?: CallOptions): Promise<Segment[]> {
    return (await this.#read<{ items: Segment[] }>('', options)).items
  }

  /**
   * Reads a segment.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * console.log((await client.segments.get('hoppers')).filter) // { last_name: 'Hopper' }
   * ```
   */
  get(key: string, options?: CallOptions): Promise<Segment> {
    return this.#read(`/${encoded(key)}`, options)
  }

  /**
   * Changes the name, the description or the filter of a segment.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * console.log((await client.segments.patch('hoppers', { name: 'The Hoppers' })).name) // The Hoppers
   * ```
   */
  patch(
    key: string,
    body: Omit<SegmentPatch, 'filter'> & { filter?: FilterOf<S, 'people'> },
    options?: SegmentFilterOptions,
  ): Promise<WrittenSegment> {
    // Repeating the request is safe: the same values are no change.
    return this.#write('PATCH', `/${encoded(key)}`, body, options, true)
  }

  /**
   * Deletes a segment. Rejects if another segment uses it.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * await client.segments.delete('hoppers')
   * console.log((await client.segments.list()).length) // 0
   * ```
   */
  async delete(key: string, options?: SegmentOptions): Promise<void> {
    await this.#write('DELETE', `/${encoded(key)}`, undefined, options, true)
  }

  /**
   * Lists the people of a segment, with the options of a filter.
   *
   * ```ts
   * await client.segments.create({ key: 'named', filter: { first_name: { $exists: true } } })
   * const { items, count } = await client.segments.people('named', { count: true, size: 1 }).page()
   * console.log(items.length, count) // 1 2
   * ```
   */
  people<Field extends FieldName<S, 'people'> = never, Include extends RelationshipKey<S, 'people'> = never>(
    key: string,
    options: SegmentPeopleOptions & Selection<S, 'people', Field, Include> = {},
  ): Listing<ItemOf<S, 'people', Field, Include>> {
    const { size, after_id: firstId, cursor: firstCursor, sort_direction, sort, ...rest } = options
    const { fields, include, count, ...callOptions } = rest
    const order = { sort_direction, sort: sort && [sort.field, ...(sort.direction ? [sort.direction] : [])].join(':') }
    const read = ({ after_id, cursor }: Position, isFirst: boolean) => {
      const selection = { fields, include, ...order, count: count && isFirst ? 'true' : undefined }
      const path = `/${encoded(key)}/people${queryOf({ size, after_id, cursor, ...selection })}`
      return this.#read<PageAnswer<ItemOf<S, 'people', Field, Include>>>(path, callOptions)
    }
    const idOf = (person: object) => ('id' in person ? (person.id as string) : undefined)
    return new Listing(read, idOf, { after_id: firstId, cursor: firstCursor })
  }

  async #read<T>(path: string, options: CallOptions | undefined): Promise<T> {
    const request = { method: 'GET', path: `/v1/segments${path}`, options, repeatable: true, writes: false } as const
    return (await this.#send(request)) as T
  }

  async #write<T>(
    method: Request['method'],
    path: string,
    body: unknown,
    options: SegmentFilterOptions | undefined,
    repeatable: boolean,
  ): Promise<T> {
    return (await this.#send({ method, path: `/v1/segments${path}`, body, options, repeatable, writes: true })) as T
  }
}
