import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { resolveSchema, type Schema, typesOf } from './operations.ts'
import { external_id, json, padded, text, trimStrings } from './texts.ts'

/** Generators by property name. They replace the schema where validity depends on stored data. */
export type FieldGenerators = Record<string, fc.Arbitrary<unknown> | undefined>

/** Generates values that a schema of the document allows, with any subset of the optional properties. */
export function valuesOf(
  schema: Schema,
  document: OpenApiDocument,
  generators: FieldGenerators,
): fc.Arbitrary<unknown> {
  const resolvedSchema = resolveSchema(schema, document)
  if (resolvedSchema.enum) return fc.constantFrom(...resolvedSchema.enum)
  if ('const' in resolvedSchema) return fc.constant(resolvedSchema.const)
  if (resolvedSchema.anyOf)
    return fc.oneof(...resolvedSchema.anyOf.map(branch => valuesOf(branch, document, generators)))
  const types = typesOf(resolvedSchema)
  if (types.length === 0) return json
  const branches = types.map(type => ({
    weight: type === 'null' ? 1 : 4,
    arbitrary: generatorOfType(type, resolvedSchema, document, generators),
  }))
  return fc.oneof(...branches)
}

function generatorOfType(
  type: string,
  schema: Schema,
  document: OpenApiDocument,
  generators: FieldGenerators,
): fc.Arbitrary<unknown> {
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer')
    return fc.integer({ min: schema.minimum ?? -1000, max: Math.min(schema.maximum ?? 1000, 1000) })
  if (type === 'string') return textOf(schema)
  if (type === 'array')
    return fc.array(valuesOf(schema.items ?? {}, document, generators), {
      minLength: schema.minItems ?? 0,
      maxLength: Math.min(schema.maxItems ?? 4, 4),
    })
  return objectOf(schema, document, generators)
}

function objectOf(schema: Schema, document: OpenApiDocument, generators: FieldGenerators): fc.Arbitrary<unknown> {
  if (!schema.properties) return fc.dictionary(fc.constantFrom('a', 'b'), json, { maxKeys: 2, noNullPrototype: true })
  const model = Object.fromEntries(
    Object.entries(schema.properties).map(([key, property]) => [
      key,
      generators[key] ?? valuesOf(property, document, generators),
    ]),
  )
  return fc.record(model, { requiredKeys: schema.required ?? [], noNullPrototype: true })
}

const date = fc.date({ min: new Date('1850-01-01'), max: new Date('2020-01-01'), noInvalidDate: true })
const objectId = fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), minLength: 24, maxLength: 24 })

/** Generators of valid strings for each format that kith defines. */
export const formats: Record<string, fc.Arbitrary<string>> = {
  'external-id': external_id,
  email: fc.constantFrom(
    'ada@example.org',
    "o'brien+x@example.co.uk",
    'ö@exämple.org',
    `${'a'.repeat(64)}@example.org`,
  ),
  'date-of-birth': date.map(moment => moment.toISOString().slice(0, 10)),
  date: date.map(moment => moment.toISOString().slice(0, 10)),
  'date-time': fc.constantFrom('2099-01-01T00:00:00Z', '2099-01-01T00:00:00.5+02:00', '2001-01-01T00:00:00Z'),
  language: fc.constantFrom('en', 'pt-BR', 'zh_Hans_CN', 'de-CH-1901', 'x-klingon'),
  uuid: fc.oneof(
    fc.uuid(),
    fc.uuid().map(id => id.toUpperCase()),
  ),
  'collection-time': fc
    .date({ min: new Date('1990-01-01'), max: new Date('2020-01-01'), noInvalidDate: true })
    .chain(moment => fc.constantFrom(moment.toISOString(), moment.toISOString().replace('Z', '000+00:00'))),
  'ip-address': fc.oneof(fc.ipV4(), fc.ipV6()),
  'time-zone': fc.constantFrom('UTC', 'Europe/Rome', 'America/St_Johns', 'Asia/Kathmandu'),
  'object-id': objectId,
  'entity-id': fc.oneof(fc.uuid(), objectId),
}

function textOf({ format, pattern, minLength = 0, maxLength = 255 }: Schema): fc.Arbitrary<string> {
  if (format) return padded(formats[format]!)
  if (pattern) return padded(fc.stringMatching(new RegExp(pattern)))
  const hasValidLength = (value: string) => {
    const characters = [...String(trimStrings(value))].length
    return characters >= minLength && characters <= maxLength
  }
  return padded(text.filter(hasValidLength))
}
