import type { TSchema } from 'typebox'
import { nullable, Type } from '../json-schema.ts'

/** The keys of stacks, attributes and consent types. */
export const definitionKey = Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })
export const definitionName = Type.String({ minLength: 1, maxLength: 255 })
export const definitionDescription = nullable(Type.String({ maxLength: 2_000 }))
export const definitionState = Type.Enum(['active', 'archived'])

/** The times of creation and of the last change: RFC 3339, UTC, milliseconds. */
export const times = {
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
}

/** The response of an endpoint that lists all definitions of a kind. */
export const listSchema = <T extends TSchema>(element: T) =>
  Type.Object(
    { items: Type.Array(element) },
    { title: `${(element as { title?: string }).title}List`, examples: [{ items: examplesOf(element) }] },
  )

/** The examples of a schema. */
export const examplesOf = (schema: TSchema): unknown[] => (schema as { examples?: unknown[] }).examples ?? []
