import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from 'typebox'
import { mapSchema } from '../values/json-schema.ts'
import { patterns } from './patterns.ts'

export type JsonSchema = { [keyword: string]: unknown }

/** The named schemas of a document. Each is written once, under its name. */
export type Shapes = ReturnType<typeof createShapes>

/** Creates an empty set of shapes. Its `write` throws an Error if two different schemas would have the same name. */
export function createShapes() {
  const schemas: Record<string, JsonSchema> = {}

  function referTo(name: string, schema: JsonSchema): JsonSchema {
    const named = mapInner(schema, nameObject, name)
    if (!isDeepStrictEqual(schemas[name] ?? named, named))
      throw new Error(`two different schemas have the title ${name}`)
    schemas[name] = named
    return { $ref: `#/components/schemas/${name}` }
  }

  const nameObject = (schema: JsonSchema, name: string): JsonSchema =>
    schema.type === 'object' ? referTo(name, schema) : mapInner(schema, nameObject, name)

  const writeOne = ({ title, ...keywords }: JsonSchema): JsonSchema => {
    const written = simplify(keywords)
    return typeof title === 'string' ? referTo(title, written) : written
  }

  /**
   * Converts a schema for the document. A schema with a title, and every object schema, becomes a reference to a named
   * schema. An object without a title is named after its position, a name that begins with `name`.
   */
  const write = (schema: TSchema, name: string): JsonSchema => nameObject(mapSchema(schema, writeOne), name)
  return { schemas, write }
}

/**
 * Returns a copy of a schema in which `change` was applied to the inner schemas, each with a name from its position.
 */
function mapInner(
  schema: JsonSchema,
  change: (inner: JsonSchema, name: string) => JsonSchema,
  name: string,
): JsonSchema {
  const { properties, items, additionalProperties, anyOf } = schema as {
    properties?: Record<string, JsonSchema>
    items?: JsonSchema
    additionalProperties?: JsonSchema | boolean
    anyOf?: JsonSchema[]
  }
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, inner]) => [key, change(inner, name + pascalCase(key))]),
      ),
    }),
    ...(items && { items: change(items, `${name}Item`) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: change(additionalProperties, `${name}Value`),
    }),
    ...(anyOf && { anyOf: anyOf.map(option => change(option, name + pascalCase(constantOf(option)))) }),
  }
}

/** Converts `attribute_values` to `AttributeValues`. */
export const pascalCase = (words: string) =>
  words.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The constant that distinguishes an option of a union from the others, or an empty text without one. */
function constantOf({ properties = {} }: { properties?: Record<string, JsonSchema> }): string {
  const constant = Object.values(properties).find(inner => typeof inner.const === 'string')?.const
  return typeof constant === 'string' ? constant : ''
}

/** The same schema in the form that OpenAPI tools support best. */
function simplify(schema: JsonSchema): JsonSchema {
  // Tools do not know distinctBy, a keyword of kith (http/input/validate.ts). The description states its rule.
  const { distinctBy: _, ...known } = schema
  return withIntegerFormat(withoutBooleanConst(withPattern(withTypedEnum(withNullableType(withFreeKeys(known))))))
}

/** Adds the pattern of a format of kith, which tools do not know. */
function withPattern(schema: JsonSchema): JsonSchema {
  const pattern = patterns[schema.format as string]
  return pattern === undefined || 'pattern' in schema ? schema : { ...schema, pattern }
}

/** Replaces the pattern `^.*$`, which matches every key, by `additionalProperties`. */
function withFreeKeys({ patternProperties, ...rest }: JsonSchema): JsonSchema {
  const patterns = Object.entries((patternProperties ?? {}) as JsonSchema)
  if (patterns.length !== 1 || patterns[0]![0] !== '^.*$')
    return patternProperties ? { patternProperties, ...rest } : rest
  return { ...rest, additionalProperties: patterns[0]![1] }
}

/**
 * Writes a union of a plain type and null as a type array: `["string", "null"]`. An object keeps its name in a union.
 */
function withNullableType({ anyOf, ...rest }: JsonSchema): JsonSchema {
  if (!Array.isArray(anyOf)) return rest
  const [first, second, ...others] = anyOf as JsonSchema[]
  const blockingKeywords = ['enum', 'const', 'anyOf', '$ref']
  const isPlain =
    typeof first?.type === 'string' && first.type !== 'object' && !blockingKeywords.some(keyword => keyword in first)
  if (!isPlain || second?.type !== 'null' || others.length > 0) return { ...rest, anyOf }
  return { ...first, ...rest, type: [first.type, 'null'] }
}

function withTypedEnum(schema: JsonSchema): JsonSchema {
  if (schema.type !== undefined || !Array.isArray(schema.enum)) return schema
  const types = [...new Set(schema.enum.map(value => (Number.isInteger(value) ? 'integer' : typeof value)))]
  return { type: types.length === 1 ? types[0] : types, ...schema }
}

/**
 * openapi-generator turns a boolean `const` into an enum of texts in Java, which does not compile. This form means the
 * same.
 */
function withoutBooleanConst({ const: only, ...rest }: JsonSchema): JsonSchema {
  if (typeof only === 'boolean') return { type: 'boolean', ...rest, not: { const: !only } }
  return only === undefined ? rest : { const: only, ...rest }
}

const maxInt32 = 2 ** 31 - 1

/** Without a format, generated clients use 32 bits for integers, which sequence numbers exceed. */
function withIntegerFormat(schema: JsonSchema): JsonSchema {
  const isInteger = [schema.type].flat().includes('integer') && !('enum' in schema) && !('const' in schema)
  const { maximum = Infinity, exclusiveMaximum = Infinity } = schema as Record<string, number>
  const isSmall = maximum <= maxInt32 || exclusiveMaximum <= maxInt32
  return !isInteger || isSmall || 'format' in schema ? schema : { ...schema, format: 'int64' }
}
