import { type TSchema, Type } from 'typebox'

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** The keys of stacks, attributes and consent types. */
export const definition_key = Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })
export const definition_name = Type.String({ minLength: 1, maxLength: 255 })
export const definition_description = nullable(Type.String({ maxLength: 2_000 }))
export const definition_state = Type.Enum(['active', 'archived'])
