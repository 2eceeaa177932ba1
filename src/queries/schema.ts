import type { Static, TObject, TSchema } from 'typebox'
import { warning } from '../changes/schema.ts'
import { labels, linksById } from '../entities/schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'
import { closedObject, count, flag, nullable, pageLimit, Type, text, time } from '../values/json-schema.ts'
import { maxCursorCharacters } from './pages/cursor.ts'

const direction = Type.Optional(
  Type.Enum(['asc', 'desc'], {
    description: "The order of the identifiers, which is the order of creation. Default: 'desc'.",
  }),
)

/** The size of a page if the request does not set it. The limit may lower it. */
export const defaultPageSize = 50

const size = (maxSize: number) =>
  pageLimit(maxSize, `The maximum number of items on the page. Default: ${Math.min(defaultPageSize, maxSize)}.`)

/** `cursor` of a cursor configuration: the `next_cursor` of the previous page. */
export const nextCursor = Type.Optional(
  Type.String({
    maxLength: maxCursorCharacters,
    description: 'The `next_cursor` of the previous page, in the same order. It takes the place of `after_id`.',
  }),
)

/** The maximum number of fields that a list can name. */
export const maxFields = 100
const maxIncludes = 10

/**
 * The members that list, filter and related share: the fields of the items, the entities to include, the form of links,
 * and a count.
 */
const pageMembers = {
  fields: Type.Optional(
    Type.Array(text(), {
      minItems: 1,
      maxItems: maxFields,
      description:
        'The members of each item: names of a read, or `attribute_values.<key>` for single keys. The others are left out. The next page is at `next_cursor`.',
    }),
  ),
  include: Type.Optional(
    Type.Array(text(), {
      minItems: 1,
      maxItems: maxIncludes,
      description:
        'Keys of relationships of the listed kind. Each item gets `included`, with the entities that they lead to. The token needs the read scope of these kinds too.',
    }),
  ),
  labels,
  links: linksById,
  count: Type.Optional(flag('Whether the response has `count`, the exact number of all items, and `sequence`.')),
}
/** The maximum number of identifiers of a request for named entities. */
export const maxNamed = 1_000

/** Body of the get endpoints. */
export function namedBody(format: CursorFormat) {
  const { fields, include, labels, links } = pageMembers
  const named = (format: string, description: string) =>
    Type.Optional(Type.Array(Type.String({ format }), { minItems: 1, maxItems: maxNamed, description }))
  return closedObject(
    {
      external_ids: named('external-id', 'External identifiers, of people also further ones.'),
      ids: named(format, 'Internal identifiers.'),
      ...{ fields, include, labels, links },
    },
    { title: format === 'uuid' ? 'PeopleNamed' : 'RecordsNamed', description: 'One of `external_ids` and `ids`.' },
  )
}
export type NamedBody = Static<ReturnType<typeof namedBody>>

/** `sort` in the body of list and filter. `parseSort` checks the field. */
const sortBody = Type.Optional(
  closedObject(
    {
      field: text(
        'A text or flag of a person, `external_id`, `created_at`, `updated_at`, `attribute_values.<key>` of an indexed attribute, or with `measure` `incoming.<owner>.<key>`: those who link here by that relationship.',
      ),
      measure: Type.Optional(
        closedObject(
          {
            op: Type.Enum(['count', 'sum', 'avg', 'min', 'max']),
            field: Type.Optional(text('A number, date or time of those who link here. Only `count` takes none.')),
          },
          { title: 'ListSortMeasure', description: 'The measure of the entities that link here.' },
        ),
      ),
      where: Type.Optional(
        Type.Record(text(), Type.Unknown(), {
          description: 'Only with `measure`: a filter on those who link here. The others are not measured.',
        }),
      ),
      direction: Type.Optional(
        Type.Enum(['asc', 'desc'], { description: "Entities without a value come last in both. Default: 'asc'." }),
      ),
    },
    {
      title: 'ListSort',
      description:
        'Sorts the page by a field, or by a measure of those who link here, instead of the identifier. The next page is at `next_cursor`. The first request that sorts by a field builds its index.',
    },
  ),
)

const cursor = (title: string, maxSize: number, after: { format: string; description: string }) =>
  Type.Optional(
    closedObject({ size: size(maxSize), cursor: nextCursor, after_id: Type.Optional(Type.String(after)) }, { title }),
  )

const cursorOf = (format: CursorFormat, maxSize: number) => {
  const description = 'The identifier of the last item of the previous page. If absent, the page is the first.'
  return cursor(format === 'uuid' ? 'PersonCursor' : 'RecordCursor', maxSize, { format, description })
}

/** The format of a kind's internal identifier, which serves as its cursor. */
type CursorFormat = 'uuid' | 'object-id'

/** Body of the list endpoints. A page has at most `maxSize` items. */
export function listBody(format: CursorFormat, maxSize: number) {
  return closedObject({
    ...pageMembers,
    cursor_configuration: cursorOf(format, maxSize),
    sorting_type: direction,
    sort: sortBody,
  })
}

/** Body of the filter endpoints. The schema leaves the filter itself open: `parseFilter` checks it. */
export function filterBody(format: CursorFormat, maxSize: number) {
  return closedObject({
    ...pageMembers,
    filter: Type.Optional(
      Type.Record(text(), Type.Unknown(), {
        description: 'Conditions that must all hold: {field: value}, {field: {operator: value}}, $and, $or, $not.',
      }),
    ),
    cursor_configuration: cursorOf(format, maxSize),
    sort_direction: direction,
    sort: sortBody,
  })
}

const next_cursor = nullable(text('The `cursor` of the next page, or null on the last page.'))

const counts = {
  count: Type.Optional(count('The number of all items. Only with `count: true`.')),
  sequence: Type.Optional(count('The number of the last change that `count` includes.')),
}

/** The warnings about undeclared keys of a request. */
export const warnings = Type.Array(warning, {
  description: 'Keys of the request that are not declared and that no entity carries. Absent if there are none.',
})

/** The time by which relative times were resolved. */
export const evaluatedAt = Type.Optional(
  time('The time that the relative times of the filter counted from. Absent if it has none.'),
)

/** The schemas of both kinds of entity. */
type Elements = { person: TSchema; record: TSchema }

/** An item of a page: a whole element, or the members that `fields` names. A page can include all `Elements`. */
function itemsOf(element: TSchema, { person, record }: Elements) {
  const { title, properties } = element as TObject & { title: string }
  const included = Type.Optional(
    Type.Record(text(), Type.Union([person, record, Type.Null(), Type.Array(Type.Union([person, record]))]), {
      title: 'Included',
      description:
        'Only with `include`: by key, the entity that the relationship leads to or null, or an array of them for `many`.',
    }),
  )
  const fields = Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)])
  const item = Type.Object({ ...properties, included }, { title: `${title}Item` })
  const selection = Type.Object(
    { ...Object.fromEntries(fields), included },
    { title: `${title}Selection`, description: 'The members that `fields` names, and no others.' },
  )
  return { title, item, selection }
}

/** The response of get for one kind of entity. */
export function namedAnswer(element: TSchema, elements: Elements) {
  const { title, item, selection } = itemsOf(element, elements)
  const inOrder = (each: TSchema) =>
    Type.Array(nullable(each), {
      description: 'In the order of the identifiers. Null for one that leads to no entity.',
    })
  return Type.Union([
    Type.Object({ items: inOrder(item) }, { title: `${title}Named`, examples: [{ items: examplesOf(element) }] }),
    Type.Object({ items: inOrder(selection) }, { title: `${title}NamedSelection` }),
  ])
}

/** The response of list, filter and related for one kind of entity: whole items, or the members that `fields` names. */
export function answerSchema(element: TSchema, elements: Elements, name: 'List' | 'Filter' | 'Related') {
  const { title, item, selection } = itemsOf(element, elements)
  const has_more = flag('Whether another page follows.')
  // A list can name fields too, in the `where` of its order.
  const rest = {
    ...counts,
    ...(name !== 'Related' && { evaluated_at: evaluatedAt, warnings: Type.Optional(warnings) }),
  }
  return Type.Union([
    Type.Object(
      { items: Type.Array(item), has_more, next_cursor: Type.Optional(next_cursor), ...rest },
      { title: `${title}${name}Page`, examples: [{ items: examplesOf(element), has_more: false }] },
    ),
    Type.Object(
      { items: Type.Array(selection), has_more, next_cursor, ...rest },
      { title: `${title}${name}SelectionPage` },
    ),
  ])
}

/** Body of the related endpoints. The cursor is an identifier of the target's kind, so its format depends on the target. */
export function relatedBody(maxSize: number) {
  return closedObject(
    {
      ...pageMembers,
      target: text('The kind of entity to list: `people`, or the key of a stack.'),
      attribute_key: Type.Optional(
        text('The key of one relationship. If absent, every relationship between the two kinds.'),
      ),
      direction: Type.Optional(
        Type.Enum(['outgoing', 'incoming', 'both'], {
          description: "Links of the entity (outgoing), links that point to it (incoming), or both. Default: 'both'.",
        }),
      ),
      cursor_configuration: cursor('RelatedCursor', maxSize, {
        format: 'entity-id',
        description: 'The identifier of the last item of the previous page.',
      }),
      sorting_type: direction,
    },
    { title: 'RelatedBody' },
  )
}

export type ListBody = Static<ReturnType<typeof listBody>>
export type FilterBody = Static<ReturnType<typeof filterBody>>
export type RelatedBody = Static<ReturnType<typeof relatedBody>>
/** The members that list, filter and related share. */
export type PageBody = Omit<ListBody, 'sorting_type' | 'sort'>
export type SortBody = NonNullable<ListBody['sort']>
export type MeasuredSortBody = SortBody & { measure: NonNullable<SortBody['measure']> }
