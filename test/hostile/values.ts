import fc from 'fast-check'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { resolved, type Schema, typesOf } from './operations.ts'
import { external_id, json, padded, text, trimmed } from './texts.ts'

/** What stands under a property of this name, where the schema alone does not say what the stored data allow. */
export type Knowledge = Record<string, fc.Arbitrary<unknown> | undefined>

/** Values that a schema of the document allows; optional properties come and go. */
export function valuesOf(schema: Schema, document: OpenApiDocument, known: Knowledge): fc.Arbitrary<unknown> {
  const meant = resolved(schema, document)
  if (meant.enum) return fc.constantFrom(...meant.enum)
  if ('const' in meant) return fc.constant(meant.const)
  if (meant.anyOf) return fc.oneof(...meant.anyOf.map(branch => valuesOf(branch, document, known)))
  const types = typesOf(meant)
  if (types.length === 0) return json
  const branches = types.map(type => ({
    weight: type === 'null' ? 1 : 4,
    arbitrary: ofType(type, meant, document, known),
  }))
  return fc.oneof(...branches)
}

function ofType(type: string, schema: Schema, document: OpenApiDocument, known: Knowledge): fc.Arbitrary<unknown> {
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer')
    return fc.integer({ min: schema.minimum ?? -1000, max: Math.min(schema.maximum ?? 1000, 1000) })
  if (type === 'string') return textOf(schema)
  if (type === 'array')
    return fc.array(valuesOf(schema.items ?? {}, document, known), {
      minLength: schema.minItems ?? 0,
      maxLength: Math.min(schema.maxItems ?? 4, 4),
    })
  return objectOf(schema, document, known)
}

function objectOf(schema: Schema, document: OpenApiDocument, known: Knowledge): fc.Arbitrary<unknown> {
  if (!schema.properties) return fc.dictionary(fc.constantFrom('a', 'b'), json, { maxKeys: 2, noNullPrototype: true })
  const model = Object.fromEntries(
    Object.entries(schema.properties).map(([key, property]) => [
      key,
      known[key] ?? valuesOf(property, document, known),
    ]),
  )
  return fc.record(model, { requiredKeys: schema.required ?? [], noNullPrototype: true })
}

const date = fc.date({ min: new Date('1850-01-01'), max: new Date('2020-01-01'), noInvalidDate: true })
/** Strings of each format that is the service's own. */
export const formats: Record<string, fc.Arbitrary<string>> = {
  'external-id': external_id,
  email: fc.constantFrom(
    'ada@example.org',
    "o'brien+x@example.co.uk",
    'ö@exämple.org',
    `${'a'.repeat(64)}@example.org`,
  ),
  'date-of-birth': date.map(moment => moment.toISOString().slice(0, 10)),
  language: fc.constantFrom('en', 'pt-BR', 'zh_Hans_CN', 'de-CH-1901', 'x-klingon'),
  uuid: fc.oneof(
    fc.uuid(),
    fc.uuid().map(id => id.toUpperCase()),
  ),
  'object-id': fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), minLength: 24, maxLength: 24 }),
}

function textOf({ format, pattern, minLength = 0, maxLength = 255 }: Schema): fc.Arbitrary<string> {
  if (format) return padded(formats[format]!)
  if (pattern) return padded(fc.stringMatching(new RegExp(pattern)))
  const fits = (value: string) => {
    const characters = [...String(trimmed(value))].length
    return characters >= minLength && characters <= maxLength
  }
  return padded(text.filter(fits))
}
