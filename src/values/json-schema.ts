import type { TOptional, TProperties, TSchema, Type as TypeBox } from 'typebox'

/** The schemas of optional members. */
const optional = new WeakSet<object>()

const build =
  (keywords: object) =>
  (options: object = {}) => ({ ...keywords, ...options })

const builders = {
  String: build({ type: 'string' }),
  Number: build({ type: 'number' }),
  Integer: build({ type: 'integer' }),
  Boolean: build({ type: 'boolean' }),
  Null: build({ type: 'null' }),
  Unknown: build({}),
  Literal: (value: string | number | boolean, options = {}) => ({ type: typeof value, const: value, ...options }),
  Enum: (values: readonly string[], options = {}) => ({ enum: values, ...options }),
  Union: (anyOf: object[], options = {}) => ({ anyOf, ...options }),
  Array: (items: object, options = {}) => ({ type: 'array', items, ...options }),
  Record: (_: object, value: object, options = {}) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  Object(properties: Record<string, object>, options = {}) {
    const required = Object.keys(properties).filter(key => !optional.has(properties[key]!))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
  Optional(schema: object) {
    const copy = { ...schema }
    optional.add(copy)
    return copy
  },
  Unsafe: (schema: object) => ({ ...schema }),
}

/**
 * The builders of TypeBox that kith uses. They return the same JSON Schemas with TypeBox's types, which `Static` and
 * the compiler read. TypeBox's own builders take 0.16 s of the 0.72 s of processor time in which the service is loaded,
 * because they come with the whole language of TypeScript's types, in 373 files. A test compares both.
 */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>

/** The schema of an object that has no other members. */
export const closedObject = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** The members of an object, all of them optional. */
export const optionals = <T extends TProperties>(properties: T) =>
  mapValues(properties, schema => Type.Optional(schema as TSchema)) as { [Name in keyof T]: TOptional<T[Name]> }

/** The schema of a value that may be null. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

// Values that many schemas have. JSON omits an undefined description.

const described = (description: string | undefined) => (description === undefined ? {} : { description })

export const text = (description?: string) => Type.String(described(description))
/** A text that is not empty. */
export const filledText = (maxLength: number, description?: string) =>
  Type.String({ minLength: 1, maxLength, ...described(description) })
export const flag = (description?: string) => Type.Boolean(described(description))
export const time = (description?: string) => Type.String({ format: 'date-time', ...described(description) })
export const uuid = (description?: string) => Type.String({ format: 'uuid', ...described(description) })
/** A number from 1, such as an identifier or a version. */
export const number = (description?: string) => Type.Integer({ minimum: 1, ...described(description) })
export const count = (description?: string) => Type.Integer({ minimum: 0, ...described(description) })
/** A number of a request that a statement compares with a column. */
export const storedNumber = (description: string) => Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })
/** The size of a page, which a query may set. */
export const pageLimit = (maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, description }))
/** A member that is true or absent. */
export const ifTrue = (description: string) => Type.Optional(Type.Literal(true, { description }))

/** The schema of a page of a list, with the `items` of its example. */
export const pageOf = <T extends TSchema>(item: T, title: string, description: string, items: object[]) =>
  Type.Object(
    { items: Type.Array(item), has_more: flag('Whether another page follows.') },
    { title, description, examples: [{ items, has_more: false }] },
  )

const dataKeywords = ['const', 'enum', 'default', 'examples']
const namedKeywords = ['properties', 'patternProperties', '$defs', 'dependentSchemas']

/** Returns a copy of a JSON Schema in which `change` was applied to every schema, innermost first. */
export function mapSchema<Schema extends object>(schema: object, change: (schema: Schema) => Schema): Schema {
  const mapAny = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(mapAny)
    return typeof value === 'object' && value !== null ? mapSchema(value, change) : value
  }
  const mapKeyword = (value: unknown, keyword: string): unknown => {
    if (dataKeywords.includes(keyword)) return value
    return namedKeywords.includes(keyword) ? mapValues(value as object, mapAny) : mapAny(value)
  }
  return change(mapValues(schema, mapKeyword) as Schema)
}

function mapValues(values: object, change: (value: unknown, key: string) => unknown): object {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value, key)]))
}
