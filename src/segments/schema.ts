import type { Static } from 'typebox'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  listSchema,
  times,
} from '../organizations/definition-schema.ts'
import { type FilterBody, filterBody, nextCursor, warnings } from '../queries/schema.ts'
import { closedObject, optionals, pageLimit, Type, text } from '../values/json-schema.ts'

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

/** The query of GET /v1/segments/{segment_key}/people: what POST /v1/people/filter takes. A page has at most `maxSize` items. */
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
    // An enum would be filled in on the page of the documentation.
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
