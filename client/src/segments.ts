import type { FilterOf } from './filter.ts'
import { Listing, type PageAnswer, type PageOptions, type Position } from './listing.ts'
import type { CallOptions, WriteOptions } from './options.ts'
import type { OrganizationSchema } from './organization.ts'
import type { FieldName, ItemOf, RelationshipKey, Selection } from './selection.ts'
import type { Transport } from './transport.ts'
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
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
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
    return this.#transport.send('POST /v1/segments', { body }, options)
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
    return (await this.#transport.send('GET /v1/segments', {}, options)).items
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
    return this.#transport.send('GET /v1/segments/{segment_key}', { params: { segment_key: key } }, options)
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
    return this.#transport.send('PATCH /v1/segments/{segment_key}', { params: { segment_key: key }, body }, options)
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
    await this.#transport.send('DELETE /v1/segments/{segment_key}', { params: { segment_key: key } }, options)
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
      const query = { size, after_id, cursor, fields, include, ...order, count: (count && isFirst) || undefined }
      return this.#transport.sendAs<PageAnswer<ItemOf<S, 'people', Field, Include>>>(
        'GET /v1/segments/{segment_key}/people',
        { params: { segment_key: key }, query },
        callOptions,
      )
    }
    const idOf = (person: object) => ('id' in person ? (person.id as string) : undefined)
    return new Listing(read, idOf, { after_id: firstId, cursor: firstCursor })
  }
}
