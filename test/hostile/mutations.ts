import type { OpenApiDocument } from '../../src/openapi/document.ts'
import type { ErrorCode } from '../../src/values/errors.ts'
import { pointer } from '../../src/values/errors.ts'
import { resolveSchema, type Schema, typesOf } from './operations.ts'

type Values = Record<string, unknown>

/**
 * A body that breaks one rule of the document, the expected error code, and the expected path (JSON Pointer).
 * A body that is a string or bytes is sent unencoded.
 */
export type Mutation = { rule: string; code: ErrorCode; path: string; body: unknown }

type Location = { document: OpenApiDocument; path: (string | number)[]; replace: (value: unknown) => unknown }

const malformed: Record<string, string[]> = {
  'external-id': ['', '.', '..', 'a\u0007b', 'x'.repeat(256), '\u{1f600}'.repeat(256), ' \u2003 '],
  email: ['', 'ada', 'ada@example', '@example.org', 'a b@example.org', `${'a'.repeat(65)}@example.org`],
  'date-of-birth': ['', '1849-12-31', '2023-02-29', '9999-01-01', '2000-1-1', '2000-01-01T00:00:00Z'],
  language: ['', 'e', 'en--us', 'toolonglanguage', 'en-'],
  uuid: ['', 'x', '01936f3e0a5c7c3e9d0a5b6f3c1d2e4f', '{01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f}'],
  'collection-time': ['', '2020-01-01', '2020-01-01T00:00:00', '1989-12-31T23:59:59Z', '2020-01-01T00:00:00.Z'],
  'ip-address': ['', 'x', '1.2.3', '256.1.1.1', '010.1.1.1', '1:2:3', 'fe80::1%eth0', '192.0.2.0/24'],
  'time-zone': ['', 'Berlin', 'Europe/Nowhere', '+01:00', 'EST5EDT;x'],
  'entity-id': ['', 'x', 'f'.repeat(32), 'g'.repeat(24), '{01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f}'],
  'object-id': ['', 'x', 'f'.repeat(23), 'g'.repeat(24), `0x${'f'.repeat(22)}`],
}

/** Returns every mutation of a valid value that breaks one rule of its schema. The rest of the value stays the same. */
export function mutationsOf(schema: Schema, value: unknown, document: OpenApiDocument): Mutation[] {
  return mutationsAt(schema, value, { document, path: [], replace: whole => whole })
}

function mutationsAt(schema: Schema, value: unknown, location: Location): Mutation[] {
  const resolvedSchema = resolveSchema(schema, location.document)
  if (resolvedSchema.anyOf) return []
  const mutate = (rule: string, code: ErrorCode, wrong: unknown): Mutation => ({
    rule,
    code,
    path: pointer(...location.path),
    body: location.replace(wrong),
  })
  const isRoot = location.path.length === 0
  const mutations = isRoot ? [] : wrongTypes(resolvedSchema).map(wrong => mutate('type', 'invalid_json', wrong))
  for (const wrong of wrongValues(resolvedSchema)) mutations.push(mutate('value', 'invalid_parameter', wrong))
  if (Array.isArray(value)) return [...mutations, ...arrayMutations(resolvedSchema, value, location, mutate)]
  if (typeof value === 'object' && value !== null && resolvedSchema.properties)
    return [...mutations, ...objectMutations(resolvedSchema, value as Values, location)]
  if (resolvedSchema.maxProperties !== undefined) {
    const many = Object.fromEntries(
      Array.from({ length: resolvedSchema.maxProperties + 1 }, (_, nth) => [`k${nth}`, nth]),
    )
    mutations.push(mutate('maxProperties', 'invalid_parameter', many))
  }
  return mutations
}

/** Returns a value of every JSON type that the schema excludes. `wrongValues` covers values of the right type. */
function wrongTypes(schema: Schema): unknown[] {
  const types = schema.enum ? ['string'] : typesOf(schema)
  if (types.length === 0) return []
  const otherTypes: [string, unknown][] = [
    ['string', 'text'],
    ['boolean', true],
    ['object', {}],
    ['array', []],
    ['null', null],
    [types.includes('number') ? 'number' : 'integer', 7],
  ]
  return otherTypes.filter(([type]) => !types.includes(type)).map(([, wrong]) => wrong)
}

function wrongValues(schema: Schema): unknown[] {
  if (schema.enum) return ['nothing of the kind', '', String(schema.enum[0]).toUpperCase()]
  const wrong: unknown[] = [...(malformed[schema.format ?? ''] ?? [])]
  if (schema.pattern && !schema.format) wrong.push('', 'Upper', '1a', `a${'b'.repeat(63)}`, 'a-b', 'a b', 'é')
  if (schema.minimum !== undefined) wrong.push(schema.minimum - 1, -9007199254740991)
  if (schema.maximum !== undefined) wrong.push(schema.maximum + 1)
  if (schema.minLength !== undefined) wrong.push('', ' \u0085 ')
  if (schema.maxLength !== undefined && !schema.format) wrong.push('x'.repeat(schema.maxLength + 1))
  return wrong
}

function arrayMutations(
  { items, minItems, maxItems }: Schema,
  value: unknown[],
  location: Location,
  mutate: Mutate,
): Mutation[] {
  const mutations: Mutation[] = []
  if (minItems) mutations.push(mutate('minItems', 'invalid_parameter', []))
  if (maxItems && value.length > 0)
    mutations.push(mutate('maxItems', 'invalid_parameter', Array(maxItems + 1).fill(value[0])))
  for (const [index, element] of value.entries()) {
    const replace = (wrong: unknown) => location.replace(value.with(index, wrong))
    mutations.push(...mutationsAt(items ?? {}, element, { ...location, path: [...location.path, index], replace }))
  }
  return mutations
}

type Mutate = (rule: string, code: ErrorCode, wrong: unknown) => Mutation

/** Fields that only the service sets, and a misspelt one. */
const reservedFields = [
  'id',
  'record_id',
  'organization_id',
  'version',
  'state',
  'created_at',
  'updated_at',
  'firstname',
]
const unknownFields = ['stack_key', 'active', 'constructor', 'toString', 'hasOwnProperty', '', 'External_id']

function objectMutations(schema: Schema, value: Values, location: Location): Mutation[] {
  const properties = schema.properties!
  const mutateField = (key: string, rule: string, body: Values): Mutation => ({
    rule,
    code: 'invalid_parameter',
    path: pointer(...location.path, key),
    body: location.replace(body),
  })
  const mutations: Mutation[] = []
  if (schema.additionalProperties === false)
    for (const key of [...reservedFields, ...unknownFields])
      if (!Object.hasOwn(properties, key)) mutations.push(mutateField(key, 'unknown key', { ...value, [key]: 'x' }))
  for (const key of schema.required ?? []) {
    const { [key]: _, ...rest } = value
    mutations.push(mutateField(key, 'required', rest))
  }
  for (const [key, property] of Object.entries(properties)) {
    const replace = (wrong: unknown) => location.replace({ ...value, [key]: wrong })
    mutations.push(...mutationsAt(property, value[key], { ...location, path: [...location.path, key], replace }))
  }
  return mutations
}

/** Returns mutations of the body's text for any schema: invalid JSON, and JSON that cannot be stored exactly as sent. */
export function textMutationsOf(body: Values, schema: Schema, document: OpenApiDocument): Mutation[] {
  const text = JSON.stringify(body)
  const inner = text.slice(1, -1)
  const trailingFields = inner === '' ? '' : `,${inner}`
  const unparseable = (rule: string, wrong: string | Buffer) => ({
    rule,
    code: 'failed_binding_json' as const,
    path: '',
    body: wrong,
  })
  const unstorable = (rule: string, path: string, wrong: string, code: ErrorCode = 'invalid_parameter') => ({
    rule,
    code,
    path,
    body: wrong,
  })
  const mutations = [
    unparseable('truncated JSON', text.slice(0, -1)),
    unparseable('trailing characters', `${text}}`),
    unparseable('two byte order marks', `\ufeff\ufeff${text}`),
    unparseable('only white space', ' \n'),
    unparseable('invalid UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])),
    unparseable(
      'an overlong NUL',
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')]),
    ),
    unparseable('a control character', '{"a":"\u0001"}'),
    unparseable('a trailing comma', '{"a":1,}'),
    unparseable('a comment', `{/**/"a":1${trailingFields}}`),
    unparseable('NaN', '{"a":NaN}'),
    unparseable('single quotes', "{'a':1}"),
    unstorable('an array', '', `[${text}]`, 'invalid_json'),
    unstorable('a string', '', '"text"', 'invalid_json'),
    unstorable('null', '', 'null', 'invalid_json'),
    unstorable('__proto__', '/__proto__', `{"__proto__":{"a":1}${trailingFields}}`),
    unstorable('__proto__, escaped', '/__proto__', `{"\\u005f_proto__":1${trailingFields}}`),
    unstorable('a duplicate key', '/zz', `{"zz":1,"zz":1${trailingFields}}`, 'invalid_json'),
    unstorable('a duplicate key, escaped', '/zz', `{"zz":1,"\\u007a\\u007a":2${trailingFields}}`, 'invalid_json'),
  ]
  if (!resolveSchema(schema, document).properties?.attribute_values) return mutations
  const { attribute_values: _, ...rest } = body
  const otherFields = JSON.stringify(rest).slice(1, -1)
  const withValue = (value: string) =>
    `{"attribute_values":{"k":${value}}${otherFields === '' ? '' : `,${otherFields}`}}`
  const values: [string, string, string][] = [
    ['NUL', '"a\\u0000b"', ''],
    ['a lone surrogate', '"\\ud800x"', ''],
    ['a lone low surrogate', '"x\\udc00"', ''],
    ['a NUL in a key', '{"\\u0000":1}', '/\u0000'],
    ['an overflow', '1e400', ''],
    ['an underflow', '1e-400', ''],
    ['2^53 + 1', '9007199254740993', ''],
    ['too many digits', '0.12345678901234567890', ''],
    ['a nested __proto__', '{"__proto__":1}', '/__proto__'],
    ['a string too long', `"${'x'.repeat(65_537)}"`, ''],
  ]
  for (const [rule, value, path] of values)
    mutations.push(unstorable(rule, `/attribute_values/k${path}`, withValue(value)))
  mutations.push(
    unstorable('a depth of 33', `/attribute_values/k${'/0'.repeat(30)}`, withValue('['.repeat(31) + ']'.repeat(31))),
  )
  mutations.push(unstorable('an empty key', '/attribute_values/', withValue('1').replace('"k"', '""')))
  return mutations
}
