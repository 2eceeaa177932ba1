import type { Static, TObject, TSchema } from 'typebox'
import { pageSchema } from '../entities/schema.ts'
import { Type } from '../json-schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'

const direction = Type.Optional(
  Type.Enum(['asc', 'desc'], {
    description: "The order of the identifiers, which is the order of creation. Default: 'desc'.",
  }),
)

/** The size of a page if the request names none and the limit allows as many. */
export const defaultPageSize = 50

const size = (maxSize: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxSize,
      description: `The maximum number of items on the page. Default: ${Math.min(defaultPageSize, maxSize)}.`,
    }),
  )

const cursor = (format: string, maxSize: number) =>
  Type.Optional(
    Type.Object(
      {
        size: size(maxSize),
        after_id: Type.Optional(
          Type.String({
            format,
            description: 'The identifier of the last item of the previous page. If absent, the page is the first.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  )

/** The format of a kind's internal identifier, which serves as its cursor. */
export type CursorFormat = 'uuid' | 'object-id'

/** Body of the list endpoints. A page has at most `maxSize` items. */
export function listBody(format: CursorFormat, maxSize: number) {
  return Type.Object(
    { cursor_configuration: cursor(format, maxSize), sorting_type: direction },
    { additionalProperties: false },
  )
}

/** Body of the filter endpoints. The schema leaves the filter itself open: `parseFilter` checks it. */
export function filterBody(format: CursorFormat, maxSize: number) {
  return Type.Object(
    {
      filter: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), {
          description: 'Conditions that must all hold: {field: value}, {field: {operator: value}}, $and, $or, $not.',
        }),
      ),
      cursor_configuration: cursor(format, maxSize),
      sort_direction: direction,
    },
    { additionalProperties: false },
  )
}

/** The response of the filter endpoints: a page, with warnings about unknown keys. */
export function filterPageSchema(element: TSchema) {
  const { properties } = pageSchema(element) as TObject
  const warnings = Type.Array(
    Type.Object({ path: Type.String({ description: 'A JSON Pointer into the body.' }), message: Type.String() }),
    {
      description: 'Keys of the filter that are not declared and that no entity carries. Absent if there are none.',
    },
  )
  const { title } = element as { title?: string }
  return Type.Object(
    { ...properties, warnings: Type.Optional(warnings) },
    { ...(title && { title: `${title}FilterPage` }), examples: [{ items: examplesOf(element), has_more: false }] },
  )
}

/** Body of the related endpoints. The cursor is an identifier of the target's kind, so its format depends on the target. */
export function relatedBody(maxSize: number) {
  return Type.Object(
    {
      target: Type.String({ description: 'The kind of entity to list: `people`, or the key of a stack.' }),
      attribute_key: Type.Optional(
        Type.String({
          description: 'The key of one relationship. If absent, every relationship between the two kinds.',
        }),
      ),
      direction: Type.Optional(
        Type.Enum(['outgoing', 'incoming', 'both'], {
          description: "Links of the entity (outgoing), links that point to it (incoming), or both. Default: 'both'.",
        }),
      ),
      cursor_configuration: Type.Optional(
        Type.Object(
          {
            size: size(maxSize),
            after_id: Type.Optional(
              Type.String({ description: 'The identifier of the last item of the previous page.' }),
            ),
          },
          { additionalProperties: false },
        ),
      ),
      sorting_type: direction,
    },
    { additionalProperties: false },
  )
}

type Cursor = { size?: number; after_id?: string }
type Direction = 'asc' | 'desc'

export type ListBody = { cursor_configuration?: Cursor; sorting_type?: Direction }
export type FilterBody = { filter?: Record<string, unknown>; cursor_configuration?: Cursor; sort_direction?: Direction }
export type RelatedBody = Static<ReturnType<typeof relatedBody>>
