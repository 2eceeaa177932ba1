import type { ErrorWord } from '../../src/errors.ts'
import { pointer } from '../../src/errors.ts'
import type { OpenApiDocument } from '../../src/openapi/document.ts'
import { resolved, type Schema, typesOf } from './operations.ts'

type Values = Record<string, unknown>

/**
 * One rule of the document, broken: the body that breaks it, the word it is refused with, and the place it is named at.
 * A body that is a text or bytes goes out as it is.
 */
export type Break = { rule: string; word: ErrorWord; path: string; body: unknown }

type Place = { document: OpenApiDocument; path: (string | number)[]; put: (value: unknown) => unknown }

const malformed: Record<string, string[]> = {
  'external-id': ['', '.', '..', 'a\u0007b', 'x'.repeat(256), '\u{1f600}'.repeat(256), ' \u2003 '],
  email: ['', 'ada', 'ada@example', '@example.org', 'a b@example.org', `${'a'.repeat(65)}@example.org`],
  'date-of-birth': ['', '1849-12-31', '2023-02-29', '9999-01-01', '2000-1-1', '2000-01-01T00:00:00Z'],
  language: ['', 'e', 'en--us', 'toolonglanguage', 'en-'],
  uuid: ['', 'x', '01936f3e0a5c7c3e9d0a5b6f3c1d2e4f', '{01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f}'],
  'object-id': ['', 'x', 'f'.repeat(23), 'g'.repeat(24), `0x${'f'.repeat(22)}`],
}

/** Every way to break one rule of a schema in a value that keeps them all; each leaves the rest of the value as it is. */
export function breaksOf(schema: Schema, value: unknown, document: OpenApiDocument): Break[] {
  return breaksAt(schema, value, { document, path: [], put: whole => whole })
}

function breaksAt(schema: Schema, value: unknown, place: Place): Break[] {
  const meant = resolved(schema, place.document)
  if (meant.anyOf) return []
  const here = (rule: string, word: ErrorWord, wrong: unknown): Break => ({
    rule,
    word,
    path: pointer(...place.path),
    body: place.put(wrong),
  })
  const isRoot = place.path.length === 0
  const found = isRoot ? [] : wrongTypes(meant).map(wrong => here('type', 'invalid_json', wrong))
  for (const wrong of wrongValues(meant)) found.push(here('value', 'invalid_parameter', wrong))
  if (Array.isArray(value)) return [...found, ...inArray(meant, value, place, here)]
  if (typeof value === 'object' && value !== null && meant.properties)
    return [...found, ...inObject(meant, value as Values, place)]
  if (meant.maxProperties !== undefined) {
    const many = Object.fromEntries(Array.from({ length: meant.maxProperties + 1 }, (_, nth) => [`k${nth}`, nth]))
    found.push(here('maxProperties', 'invalid_parameter', many))
  }
  return found
}

/** Values of every JSON type that the schema has not; numbers with a fraction for integers are left to `value`. */
function wrongTypes(schema: Schema): unknown[] {
  const types = schema.enum ? ['string'] : typesOf(schema)
  if (types.length === 0) return []
  const others: [string, unknown][] = [
    ['string', 'text'],
    ['boolean', true],
    ['object', {}],
    ['array', []],
    ['null', null],
    ['integer', 7],
  ]
  return others.filter(([type]) => !types.includes(type)).map(([, wrong]) => wrong)
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

function inArray({ items, minItems, maxItems }: Schema, value: unknown[], place: Place, here: Here): Break[] {
  const found: Break[] = []
  if (minItems) found.push(here('minItems', 'invalid_parameter', []))
  if (maxItems && value.length > 0)
    found.push(here('maxItems', 'invalid_parameter', Array(maxItems + 1).fill(value[0])))
  for (const [index, element] of value.entries()) {
    const put = (wrong: unknown) => place.put(value.with(index, wrong))
    found.push(...breaksAt(items ?? {}, element, { ...place, path: [...place.path, index], put }))
  }
  return found
}

type Here = (rule: string, word: ErrorWord, wrong: unknown) => Break

/** Fields that a service keeps for itself, and misspelt ones. */
const foreignKeys = ['id', 'record_id', 'organization_id', 'version', 'state', 'created_at', 'updated_at', 'firstname']
const moreForeignKeys = ['stack_key', 'active', 'constructor', 'toString', 'hasOwnProperty', '', 'External_id']

function inObject(schema: Schema, value: Values, place: Place): Break[] {
  const properties = schema.properties!
  const within = (key: string, rule: string, body: Values): Break => ({
    rule,
    word: 'invalid_parameter',
    path: pointer(...place.path, key),
    body: place.put(body),
  })
  const found: Break[] = []
  if (schema.additionalProperties === false)
    for (const key of [...foreignKeys, ...moreForeignKeys])
      if (!Object.hasOwn(properties, key)) found.push(within(key, 'unknown key', { ...value, [key]: 'x' }))
  for (const key of schema.required ?? []) {
    const { [key]: _, ...rest } = value
    found.push(within(key, 'required', rest))
  }
  for (const [key, property] of Object.entries(properties)) {
    const put = (wrong: unknown) => place.put({ ...value, [key]: wrong })
    found.push(...breaksAt(property, value[key], { ...place, path: [...place.path, key], put }))
  }
  return found
}

/** Ways to break a body as a text, whatever its schema: what is no JSON, or no JSON that can be kept as it was sent. */
export function breaksOfText(body: Values, schema: Schema, document: OpenApiDocument): Break[] {
  const text = JSON.stringify(body)
  const inner = text.slice(1, -1)
  const and = inner === '' ? '' : `,${inner}`
  const unread = (rule: string, wrong: string | Buffer) => ({
    rule,
    word: 'failed_binding_json' as const,
    path: '',
    body: wrong,
  })
  const unkept = (rule: string, path: string, wrong: string, word: ErrorWord = 'invalid_parameter') => ({
    rule,
    word,
    path,
    body: wrong,
  })
  const found = [
    unread('cut short', text.slice(0, -1)),
    unread('more behind it', `${text}}`),
    unread('a byte order mark', `\ufeff${text}`),
    unread('white space alone', ' \n'),
    unread('no UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])),
    unread('an overlong NUL', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')])),
    unread('a control character', '{"a":"\u0001"}'),
    unread('a trailing comma', '{"a":1,}'),
    unread('a comment', `{/**/"a":1${and}}`),
    unread('NaN', '{"a":NaN}'),
    unread('single quotes', "{'a':1}"),
    unkept('an array', '', `[${text}]`, 'invalid_json'),
    unkept('a text', '', '"text"', 'invalid_json'),
    unkept('null', '', 'null', 'invalid_json'),
    unkept('__proto__', '/__proto__', `{"__proto__":{"a":1}${and}}`),
    unkept('__proto__, escaped', '/__proto__', `{"\\u005f_proto__":1${and}}`),
    unkept('a key twice', '/zz', `{"zz":1,"zz":1${and}}`, 'invalid_json'),
    unkept('a key twice, escaped', '/zz', `{"zz":1,"\\u007a\\u007a":2${and}}`, 'invalid_json'),
  ]
  if (!resolved(schema, document).properties?.attribute_values) return found
  const { attribute_values: _, ...rest } = body
  const others = JSON.stringify(rest).slice(1, -1)
  const valued = (value: string) => `{"attribute_values":{"k":${value}}${others === '' ? '' : `,${others}`}}`
  const values: [string, string, string][] = [
    ['NUL', '"a\\u0000b"', ''],
    ['a lone surrogate', '"\\ud800x"', ''],
    ['a lone low surrogate', '"x\\udc00"', ''],
    ['a NUL in a key', '{"\\u0000":1}', '/\u0000'],
    ['an overflow', '1e400', ''],
    ['an underflow', '1e-400', ''],
    ['2^53 and one', '9007199254740993', ''],
    ['too many digits', '0.12345678901234567890', ''],
    ['__proto__ within', '{"__proto__":1}', '/__proto__'],
    ['a string too long', `"${'x'.repeat(65_537)}"`, ''],
  ]
  for (const [rule, value, path] of values) found.push(unkept(rule, `/attribute_values/k${path}`, valued(value)))
  found.push(unkept('a depth of 33', `/attribute_values/k${'/0'.repeat(30)}`, valued('['.repeat(31) + ']'.repeat(31))))
  found.push(unkept('an empty key', '/attribute_values/', valued('1').replace('"k"', '""')))
  return found
}
