import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fault, type Refusal } from '../../errors.ts'
import { trim } from '../../white-space.ts'
import { checkText, keyFault, trimAndCheck } from './trim.ts'

const limits = { stringBytes: 65_536, keyBytes: 150 }

function refusalOf(work: () => unknown): Refusal {
  try {
    work()
  } catch (error) {
    if (error instanceof Fault) return error.refusal
    throw error
  }
  throw new Error('nothing was refused')
}

const naive = (text: string) => text.replace(/^\p{White_Space}+/u, '').replace(/\p{White_Space}+$/u, '')

test('Every string at every depth is trimmed, and no key is', () => {
  const value = { ' a ': ' x ', list: [' y', { ' deep ': '\tz\u{3000}' }], n: 1, none: null, yes: true }
  expect(trimAndCheck(value, limits)).toEqual({
    ' a ': 'x',
    list: ['y', { ' deep ': 'z' }],
    n: 1,
    none: null,
    yes: true,
  })
})

test('White space is what Unicode calls so: U+0085 is trimmed, U+FEFF and U+200B stay', () => {
  expect(trim('\u0085 a\u00a0\u2028')).toBe('a')
  expect(trim('\ufeffa\u200b')).toBe('\ufeffa\u200b')
  expect(trim(' \n ')).toBe('')
  const all = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
  expect(all.filter(character => trim(character) === '')).toEqual(all.filter(character => naive(character) === ''))
})

test('Trimming equals its definition, and a second time changes nothing', () => {
  const spaces = fc.string({
    unit: fc.constantFrom(' ', '\n', '\u0085', '\u2003', '\u3000', '\ufeff', 'a', '😀', '\0'),
  })
  fc.assert(
    fc.property(fc.oneof(spaces, fc.string({ unit: 'binary' })), text => {
      expect(trim(text)).toBe(naive(text))
      expect(trim(trim(text))).toBe(trim(text))
    }),
  )
})

test('Trimming a value trims each of its strings once and for all', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), value => {
      const text = JSON.stringify(value)
      const expected = JSON.parse(text, (_, member) => (typeof member === 'string' ? naive(member) : member))
      const given = { ...JSON.parse(text), attribute_values: null }
      const once = trimAndCheck(given, limits)
      expect(once).toEqual({ ...expected, attribute_values: null })
      expect(trimAndCheck(structuredClone(once), limits)).toEqual(once)
    }),
  )
})

test('A string of 64 KiB is kept; one byte more is refused where it stands; white space around it does not count', () => {
  expect(trimAndCheck({ a: ` ${'x'.repeat(65_536)} ` }, limits)).toEqual({ a: 'x'.repeat(65_536) })
  const tooLong = { a: { 'b/c': [0, `${'è'.repeat(32_768)}x`] } }
  const refusal = refusalOf(() => trimAndCheck(tooLong, limits))
  expect([refusal.word, refusal.status]).toEqual(['invalid_parameter', 400])
  expect(refusal.details).toEqual([{ path: '/a/b~1c/1', message: 'must be at most 65536 bytes of UTF-8' }])
})

test('An attribute key of 150 bytes is kept; a longer and an empty one are refused; keys elsewhere are free', () => {
  const keyed = (key: string) => ({ attribute_values: { [key]: 1 } })
  expect(trimAndCheck(keyed('è'.repeat(75)), limits)).toEqual(keyed('è'.repeat(75)))
  expect(refusalOf(() => trimAndCheck(keyed(`${'è'.repeat(75)}x`), limits)).details[0]?.path).toBe(
    `/attribute_values/${'è'.repeat(75)}x`,
  )
  expect(refusalOf(() => trimAndCheck(keyed(''), limits)).details[0]?.path).toBe('/attribute_values/')
  const deeper = { attribute_values: { a: { '': 1, ['x'.repeat(200)]: 1 } } }
  expect(trimAndCheck(structuredClone(deeper), limits)).toEqual(deeper)
})

test('NUL and lone surrogates are refused in a text, and __proto__ as a key', () => {
  for (const text of ['\0', 'a\ud800', '\udc00\ud83d']) {
    expect(refusalOf(() => checkText(text, '/external_id')).details[0]?.path).toBe('/external_id')
    expect(keyFault(text)).toBeTypeOf('string')
  }
  expect(checkText('😀 constructor', '/external_id')).toBeUndefined()
  expect(keyFault('__proto__')).toBeTypeOf('string')
  expect(keyFault('constructor')).toBeUndefined()
})

test('Strings of spaces alone, or with all their spaces inside, are finished with', () => {
  const spaces = ' '.repeat(65_000)
  expect(trimAndCheck({ a: spaces, b: `x${spaces}x`, c: `${spaces}x` }, limits)).toEqual({
    a: '',
    b: `x${spaces}x`,
    c: 'x',
  })
})
