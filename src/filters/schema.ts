import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { pageSchema } from '../entities/schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'

const direction = Type.Optional(
  Type.Enum(['asc', 'desc'], { description: "Of the identifiers, which is the order of creation. Default: 'desc'." }),
)

/** What a page has when its size is not given, where the limit allows as much. */
export const defaultSize = 50

const size = (most: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: most,
      description: `Items of a page. Default: ${Math.min(defaultSize, most)}.`,
    }),
  )

const cursor = (format: string, most: number) =>
  Type.Optional(
    Type.Object(
      {
        size: size(most),
        after_id: Type.Optional(
          Type.String({
            format,
            description: 'The identifier of the last item of the page before; absent: from the start.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  )

/** The format of a kind's internal identifier, which is its cursor. */
export type CursorFormat = 'uuid' | 'object-id'

/** Body of the list endpoints. `most` items a page may have. */
export function listBody(format: CursorFormat, most: number) {
  return Type.Object(
    { cursor_configuration: cursor(format, most), sorting_type: direction },
    { additionalProperties: false },
  )
}

/** Body of the filter endpoints. What the filter itself may say is beyond a schema: `parseFilter` reads it. */
export function filterBody(format: CursorFormat, most: number) {
  return Type.Object(
    {
      filter: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), {
          description: 'Conditions, all of which hold: {field: value}, {field: {operator: value}}, $and, $or, $not.',
        }),
      ),
      cursor_configuration: cursor(format, most),
      sort_direction: direction,
    },
    { additionalProperties: false },
  )
}

/** The answer of the filter endpoints. */
export function filterPageSchema(element: TSchema) {
  const { properties } = pageSchema(element) as TObject
  const warnings = Type.Array(
    Type.Object({ path: Type.String({ description: 'A JSON Pointer into the body.' }), message: Type.String() }),
    {
      description: 'Keys of the filter that are not declared and that no entity carries. Absent where there are none.',
    },
  )
  const { title } = element as { title?: string }
  return Type.Object(
    { ...properties, warnings: Type.Optional(warnings) },
    { ...(title && { title: `${title}FilterPage` }), examples: [{ items: examplesOf(element), has_more: false }] },
  )
}

/** Body of the related endpoints. The cursor is an identifier of the target's kind, so its format depends on the target. */
export function relatedBody(most: number) {
  return Type.Object(
    {
      target: Type.String({ description: '`people`, or the key of a stack: what kind of entity is wanted.' }),
      attribute_key: Type.Optional(
        Type.String({ description: 'One relationship; absent: every one between the two.' }),
      ),
      direction: Type.Optional(
        Type.Enum(['outgoing', 'incoming', 'both'], {
          description: "Links of the entity itself, or links that point to it. Default: 'both'.",
        }),
      ),
      cursor_configuration: Type.Optional(
        Type.Object(
          {
            size: size(most),
            after_id: Type.Optional(
              Type.String({ description: 'The identifier of the last item of the page before.' }),
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
