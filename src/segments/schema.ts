import type { Static } from 'typebox'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  listSchema,
  times,
} from '../organizations/definition-schema.ts'
import { type FilterBody, filterBody, nextCursor, warnings } from '../queries/schema.ts'
import { closedObject, count, flag, optionals, pageLimit, Type, text, uuid } from '../values/json-schema.ts'

const filter = Type.Record(text(), Type.Unknown(), {
  description:
    'A filter on people, as POST /v1/people/filter takes it. It may name other segments: {"$segment": "key"}. Circles are refused.',
})

const described = optionals({ name: definitionName, description: definitionDescription })

/** Body of POST /v1/segments. */
export const newSegment = closedObject(
  { key: definitionKey, ...described, filter },
  { title: 'SegmentBody', examples: [{ key: 'your_key', filter: {} }] },
)
export type SegmentBody = Static<typeof newSegment>

/** Body of PATCH /v1/segments/{segment_key}. The key never changes. */
export const segmentPatch = closedObject(
  { ...described, filter: Type.Optional(filter) },
  { title: 'SegmentPatch', examples: [{}] },
)
export type SegmentPatch = Static<typeof segmentPatch>

const segmentExample = {
  key: 'english',
  name: 'english',
  description: null,
  filter: { language: 'en' },
  created_at: '2026-01-01T12:00:00.000Z',
  updated_at: '2026-01-01T12:00:00.000Z',
}

/** A segment as a read shows it. */
export const segment = Type.Object(
  { key: text(), name: text(), description: definitionDescription, filter, ...times },
  {
    title: 'Segment',
    description: 'A segment as reads return it.',
    examples: [segmentExample],
  },
)

/** The response of POST /v1/segments and of PATCH /v1/segments/{segment_key}. */
export const writtenSegment = Type.Object(
  { ...segment.properties, warnings: Type.Optional(warnings) },
  {
    title: 'WrittenSegment',
    description: 'A segment as the response to a write returns it.',
    examples: [segmentExample],
  },
)

/** The response of GET /v1/segments. */
export const segmentList = listSchema(segment)

/**
 * The query of GET /v1/segments/{segment_key}/people, with the members of POST /v1/people/filter. A page has at most
 * `maxSize` items.
 */
export const segmentPeopleQuery = (maxSize: number) => {
  const { fields, include, labels, links, count } = filterBody('uuid', maxSize).properties
  return closedObject({
    size: pageLimit(maxSize, 'The maximum number of items on the page.'),
    after_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'The id of the last person of the previous page.' }),
    ),
    cursor: nextCursor,
    sort: Type.Optional(
      text('The field to sort by, as `sort` of a filter: `last_name`, or with a direction `last_name:desc`.'),
    ),
    // The schema has no enum, because the page of the documentation would fill in a value.
    sort_direction: Type.Optional(
      Type.String({
        pattern: '^(asc|desc)$',
        description: "The order of the identifiers, `asc` or `desc`. Default: 'desc'.",
      }),
    ),
    ...optionals({ fields, include, labels, links, count }),
  })
}
export type SegmentPeopleQuery = Omit<FilterBody, 'sort' | 'cursor_configuration' | 'filter'> &
  NonNullable<FilterBody['cursor_configuration']> & { sort?: string }

/** The query of GET /v1/segments/{segment_key}/members. A page has at most `maxSize` items. */
export const segmentMembersQuery = (maxSize: number) =>
  closedObject({
    size: pageLimit(maxSize, 'The maximum number of items on the page. Default: the most that a page may have.'),
    after_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'The id of the last person of the previous page.' }),
    ),
  })
export type SegmentMembersQuery = Static<ReturnType<typeof segmentMembersQuery>>

/** The response of GET /v1/segments/{segment_key}/members. */
export const segmentMembers = Type.Object(
  {
    people: Type.Array(uuid(), { description: 'Ids of people, in their order.' }),
    has_more: flag('Whether another page follows.'),
    head: count('The number up to which the change log had told who entered and left, when the page was read.'),
    log_id: uuid('Names the numbering of `head`.'),
  },
  {
    title: 'SegmentMembers',
    description: 'A page of the people whom the change log has told to be in a segment.',
    examples: [
      {
        people: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'],
        has_more: false,
        head: 1_204,
        log_id: '6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3',
      },
    ],
  },
)
