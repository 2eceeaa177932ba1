import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from 'typebox'
import { mapSchema } from '../http/input/map-schema.ts'
import { patterns } from './patterns.ts'

export type JsonSchema = { [keyword: string]: unknown }

/** The named schemas of a document. Each is written once, under the `title` of its schema. */
export type Shapes = {
  schemas: Record<string, JsonSchema>
  /** Converts a schema for the document: a reference if it has a title, else plain JSON Schema. */
  write(schema: TSchema): JsonSchema
}

/** Creates an empty set of shapes. Its `write` throws an Error if two different schemas have the same title. */
export function createShapes(): Shapes {
  const schemas: Record<string, JsonSchema> = {}

  function writeOne({ title, ...keywords }: JsonSchema): JsonSchema {
    const written = simplify(keywords)
    if (typeof title !== 'string') return written
    if (!isDeepStrictEqual(schemas[title] ?? written, written))
      throw new Error(`two different schemas have the title ${title}`)
    schemas[title] = written
    return { $ref: `#/components/schemas/${title}` }
  }

  return { schemas, write: schema => mapSchema(schema, writeOne) }
}

/** The same schema in the form that OpenAPI tools support best. */
function simplify(schema: JsonSchema): JsonSchema {
  // distinctBy is a keyword of kith (http/input/validate.ts), which tools do not know. The description has its rule.
  const { distinctBy: _, ...known } = schema
  return withPattern(withTypedEnum(withNullableType(withFreeKeys(known))))
}

/** Adds the pattern of kith's own formats, which tools do not know. */
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

/** Writes a union of a plain type and null as a type array: `["string", "null"]`. */
function withNullableType({ anyOf, ...rest }: JsonSchema): JsonSchema {
  if (!Array.isArray(anyOf)) return rest
  const [first, second, ...others] = anyOf as JsonSchema[]
  const blockingKeywords = ['enum', 'const', 'anyOf', '$ref']
  const isPlain = typeof first?.type === 'string' && !blockingKeywords.some(keyword => keyword in first)
  if (!isPlain || second?.type !== 'null' || others.length > 0) return { ...rest, anyOf }
  return { ...first, ...rest, type: [first.type, 'null'] }
}

function withTypedEnum(schema: JsonSchema): JsonSchema {
  if (schema.type !== undefined || !Array.isArray(schema.enum)) return schema
  const types = [...new Set(schema.enum.map(value => (Number.isInteger(value) ? 'integer' : typeof value)))]
  return { type: types.length === 1 ? types[0] : types, ...schema }
}
