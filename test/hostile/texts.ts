import fc from 'fast-check'
import { hasInvisible } from '../../src/values/invisible-characters.ts'

/** A selection of Unicode White_Space characters, which kith trims (docs/api.md). */
const whiteSpace = ['\t', '\n', '\v', '\f', '\r', ' ', '\u0085', '\u00a0', '\u1680', '\u2003', '\u2028', '\u3000']

/** Trims White_Space from both ends of every string, at every depth. Keys stay unchanged. Restates the rule independently of src/. */
export function trimStrings(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/^\p{White_Space}+/u, '').replace(/\p{White_Space}+$/u, '')
  if (Array.isArray(value)) return value.map(trimStrings)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, trimStrings(member)]))
}

/** Texts with a special meaning to a parser, a shell or a terminal, but none to kith. */
export const hostileTexts = [
  `'; drop table entities; --`,
  `' or '1'='1`,
  `") or 1=1 --`,
  '$1',
  '$$;select 1;$$',
  'E\\x27',
  '%00',
  '%27%20or%201=1',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '\u202egnp.exe',
  '\u200f\u200b\u2066x\u2069',
  '\ufeffbom',
  'bom\ufeff',
  'a\ufeffb',
  '\u{1f469}\u200d\u{1f52c}',
  'e\u0301',
  'constructor',
  'toString',
  'prototype',
  'null',
  '__proto',
  '../../etc/passwd',
  'C:\\x\\y',
  '/a/b//c',
  'a#b?c&d=e',
  'a;b,c',
  '\\',
  '"',
  "'",
  '`',
  '~0~1/',
  '[0]',
  '{"a":1}',
  '\ud83d\ude00\udbff\udfff',
  '\uffff',
] as const

/** Generates texts that are stored exactly after trimming: without NUL and lone surrogates. */
export const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  { weight: 3, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }).map(toStorable) },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', 'x'.repeat(255), 'é'.repeat(200)) },
)

/** Removes NUL and replaces lone surrogates, which kith refuses to store. */
export function toStorable(value: string): string {
  return value.toWellFormed().replaceAll('\0', '')
}

/** Generates the given texts, a quarter of them with White_Space around. */
export function padded(values: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const space = fc.array(fc.constantFrom(...whiteSpace), { maxLength: 2 }).map(parts => parts.join(''))
  return fc.oneof(
    { weight: 3, arbitrary: values },
    { weight: 1, arbitrary: fc.tuple(space, values, space).map(parts => parts.join('')) },
  )
}

const nestedKey = fc
  .oneof(
    fc.constantFrom(
      ...hostileTexts,
      'constructor',
      'valueOf',
      'toString',
      '\\',
      'hasOwnProperty',
      'length',
      'then',
      'toJSON',
      '$ref',
      '',
    ),
    text,
  )
  .map(key => (key === '__proto__' ? `${key}!` : key))

const number = fc.oneof(
  fc.integer({ min: -1000, max: 1000 }),
  fc.maxSafeInteger(),
  fc.double({ min: -1e9, max: 1e9, noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, 1e-7, 5e-324, 2.2250738585072014e-308, 0.1, 9007199254740991, -9007199254740991),
)

/** Generates JSON that reads back exactly as sent. -0 is generated as 0. */
export const json: fc.Arbitrary<unknown> = fc.letrec(tie => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    padded(text),
    number.map(value => value + 0),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(nestedKey, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value

/** Generates keys of undeclared attributes. */
export const freeKey = fc.oneof(
  fc.constantFrom(
    ...hostileTexts.filter(key => key !== '\\'),
    'free',
    'constructor',
    'valueOf',
    'x.y',
    '$set',
    'key with space',
    '日本',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).map(key => `k${toStorable(key)}`),
)

const visibleTexts = hostileTexts.filter(each => !hasInvisible(each))

/** Generates external identifiers: mostly three that collide, some hostile, some new. None has the control characters or invisible ones that kith refuses. */
export const external_id = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('p0', 'p1', 'p2') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...visibleTexts, 'list', 'internal', 'batch', 'upsert', 'x'.repeat(255), '0', '-1'),
  },
  { weight: 2, arbitrary: fc.uuid() },
  { weight: 1, arbitrary: fc.constant('\u{1f600}'.repeat(255)) },
)
