import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Fault, type Refusal } from '../../values/errors.ts'
import { trim } from '../../values/white-space.ts'
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

const trimNaively = (text: string) => text.replace(/^\p{White_Space}+/u, '').replace(/\p{White_Space}+$/u, '')

it('trims every string at every depth and no key', () => {
  const value = { ' a ': ' x ', list: [' y', { ' deep ': '\tz\u{3000}' }], n: 1, none: null, yes: true }
  expect(trimAndCheck(value, limits)).toEqual({
    ' a ': 'x',
    list: ['y', { ' deep ': 'z' }],
    n: 1,
    none: null,
    yes: true,
  })
})

it('trims Unicode white space: U+0085 is removed, U+FEFF and U+200B stay', () => {
  expect(trim('\u0085 a\u00a0\u2028')).toBe('a')
  expect(trim('\ufeffa\u200b')).toBe('\ufeffa\u200b')
  expect(trim(' \n ')).toBe('')
  const all = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
  expect(all.filter(character => trim(character) === '')).toEqual(
    all.filter(character => trimNaively(character) === ''),
  )
})

it('equals the definition of trimming and is idempotent', () => {
  const spaces = fc.string({
    unit: fc.constantFrom(' ', '\n', '\u0085', '\u2003', '\u3000', '\ufeff', 'a', '😀', '\0'),
  })
  fc.assert(
    fc.property(fc.oneof(spaces, fc.string({ unit: 'binary' })), text => {
      expect(trim(text)).toBe(trimNaively(text))
      expect(trim(trim(text))).toBe(trim(text))
    }),
  )
})

it('trims each string of a value, idempotently', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), value => {
      const text = JSON.stringify(value)
      const expected = JSON.parse(text, (_, member) => (typeof member === 'string' ? trimNaively(member) : member))
      const given = { ...JSON.parse(text), attribute_values: null }
      const once = trimAndCheck(given, limits)
      expect(once).toEqual({ ...expected, attribute_values: null })
      expect(trimAndCheck(structuredClone(once), limits)).toEqual(once)
    }),
  )
})

it('accepts a string of 64 KiB without the white space around it and refuses one byte more with its path', () => {
  expect(trimAndCheck({ a: ` ${'x'.repeat(65_536)} ` }, limits)).toEqual({ a: 'x'.repeat(65_536) })
  const tooLong = { a: { 'b/c': [0, `${'è'.repeat(32_768)}x`] } }
  const refusal = refusalOf(() => trimAndCheck(tooLong, limits))
  expect([refusal.code, refusal.status]).toEqual(['invalid_parameter', 400])
  expect(refusal.details).toEqual([{ path: '/a/b~1c/1', message: 'must be at most 65536 bytes of UTF-8' }])
})

it('accepts an attribute key of 150 bytes, refuses a longer or empty one, and does not check keys elsewhere', () => {
  const keyed = (key: string) => ({ attribute_values: { [key]: 1 } })
  expect(trimAndCheck(keyed('è'.repeat(75)), limits)).toEqual(keyed('è'.repeat(75)))
  expect(refusalOf(() => trimAndCheck(keyed(`${'è'.repeat(75)}x`), limits)).details[0]?.path).toBe(
    `/attribute_values/${'è'.repeat(75)}x`,
  )
  expect(refusalOf(() => trimAndCheck(keyed(''), limits)).details[0]?.path).toBe('/attribute_values/')
  const deeper = { attribute_values: { a: { '': 1, ['x'.repeat(200)]: 1 } } }
  expect(trimAndCheck(structuredClone(deeper), limits)).toEqual(deeper)
})

it('refuses NUL and lone surrogates in a text, and __proto__ as a key', () => {
  for (const text of ['\0', 'a\ud800', '\udc00\ud83d']) {
    expect(refusalOf(() => checkText(text, '/external_id')).details[0]?.path).toBe('/external_id')
    expect(keyFault(text)).toBeTypeOf('string')
  }
  expect(checkText('😀 constructor', '/external_id')).toBeUndefined()
  expect(keyFault('__proto__')).toBeTypeOf('string')
  expect(keyFault('constructor')).toBeUndefined()
})

it('trims long strings of spaces in a short time', () => {
  const spaces = ' '.repeat(65_000)
  expect(trimAndCheck({ a: spaces, b: `x${spaces}x`, c: `${spaces}x` }, limits)).toEqual({
    a: '',
    b: `x${spaces}x`,
    c: 'x',
  })
})
