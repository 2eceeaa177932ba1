import { idOf } from './address.ts'
import { EndpointGroup } from './endpoint-group.ts'
import type { FilterOf } from './filter.ts'
import { Listing, listingOfAll, type Page, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions, WriteOptions } from './options.ts'
import type { LinksForm, OrganizationSchema } from './organization.ts'
import type { FieldName, FieldSort, ItemOf, RelationshipKey, Selection } from './selection.ts'
import type { Segment, SegmentBody, SegmentMembers, SegmentPatch, WrittenSegment } from './wire.ts'

/** The page and the order of the people of a segment. The default order is newest first. */
export type SegmentPeopleOptions = PageOptions & { order?: 'asc' | 'desc' } & CallOptions

/** The options of a write of a segment. */
export type SegmentOptions = CallOptions & Pick<WriteOptions, 'idempotencyKey'>

/** The options of a write of a filter. */
export type SegmentFilterOptions = SegmentOptions & {
  /** Refuses a filter by a key that is not declared and that no entity has. Without it, the response has `warnings`. */
  strict?: boolean
}

/** The segments of an organization: filters of people with a name. The scopes are `schema:read` and `schema:write`. */
export class SegmentEndpoints<S extends OrganizationSchema> extends EndpointGroup {
  /**
   * Creates a segment. Filters name it as `{ $segment: key }`.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * for await (const person of client.people.filter({ $segment: 'hoppers' })) console.log(person.external_id) // grace
   * ```
   */
  create(
    body: Omit<SegmentBody, 'filter'> & { filter: FilterOf<S, 'people'> },
    options?: SegmentFilterOptions,
  ): Call<WrittenSegment> {
    return this.send('POST /v1/segments', { body }, options)
  }

  /**
   * Lists all segments.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * console.log((await client.segments.list().all()).map(segment => segment.key).join()) // hoppers
   * ```
   */
  list(options?: CallOptions): Listing<Segment> {
    return listingOfAll(() => this.send('GET /v1/segments', {}, options))
  }

  /**
   * Reads a segment.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * console.log((await client.segments.get('hoppers')).filter) // { last_name: 'Hopper' }
   * ```
   */
  get(key: string, options?: CallOptions): Call<Segment> {
    return this.send('GET /v1/segments/{segment_key}', { params: { segment_key: key } }, options)
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
  ): Call<WrittenSegment> {
    return this.send('PATCH /v1/segments/{segment_key}', { params: { segment_key: key }, body }, options)
  }

  /**
   * Deletes a segment. Rejects if another segment uses it.
   *
   * ```ts
   * await client.segments.create({ key: 'hoppers', filter: { last_name: 'Hopper' } })
   * await client.segments.delete('hoppers')
   * console.log((await client.segments.list().all()).length) // 0
   * ```
   */
  async delete(key: string, options?: SegmentOptions): Promise<void> {
    await this.send('DELETE /v1/segments/{segment_key}', { params: { segment_key: key } }, options)
  }

  /**
   * Reads a page of the people in a segment according to its feed, in the order of their ids. To copy a segment, read
   * all pages, then the changes after the `head` of the first page.
   *
   * ```ts
   * await client.segments.create({ key: 'writers', filter: { first_name: { $exists: true } } })
   * const { people, has_more, head } = await client.segments.members('writers')
   * console.log(people.length, has_more) // 2 false
   * const changes = client.changes.list({ segment: 'writers', after: head })
   * console.log((await changes.all()).length) // 0
   * ```
   */
  members(key: string, { size, after, ...options }: PageOptions & CallOptions = {}): Call<SegmentMembers> {
    return this.send(
      'GET /v1/segments/{segment_key}/members',
      { params: { segment_key: key }, query: { size, after_id: after } },
      options,
    )
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
  people<
    Field extends FieldName<S, 'people'> = never,
    Include extends RelationshipKey<S, 'people'> = never,
    Labeled extends boolean = false,
    L extends LinksForm = never,
  >(
    key: string,
    options: SegmentPeopleOptions &
      Selection<S, 'people', Field, Include, Labeled, L> & { sort?: FieldSort<S, 'people'> } = {},
  ): Listing<ItemOf<S, 'people', Field, Include, Labeled, L>> {
    const { size, after, order: sort_direction, sort, fields, include, labels, links, count, ...callOptions } = options
    const sorting = sort && [sort.field, ...(sort.direction ? [sort.direction] : [])].join(':')
    const read = (position: string | undefined, isFirst: boolean) => {
      const selection = {
        fields,
        include,
        labels,
        links,
        sort: sorting,
        sort_direction,
        count: (count && isFirst) || undefined,
      }
      const query = { size, [fields || sort ? 'cursor' : 'after_id']: position, ...selection }
      return this.transport.sendAs<Page<ItemOf<S, 'people', Field, Include, Labeled, L>>>(
        'GET /v1/segments/{segment_key}/people',
        { params: { segment_key: key }, query },
        callOptions,
      )
    }
    return new Listing((after, isFirst) => pageOf(read(after, isFirst), last => idOf(last as { id: string })), after)
  }
}
