import fc from 'fast-check'
import { expect, it } from 'vitest'
import { instantOf, numericOf } from '../../values/instant.ts'
import { kindBounds, prefixBounds, termOf, termsOf } from './index-keys.ts'

const byteOrder = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const number = fc.double({ noNaN: true, noDefaultInfinity: true })

it('encodes numbers as terms in the same order', () => {
  fc.assert(
    fc.property(number, number, (a, b) => {
      expect(Math.sign(byteOrder(termOf('number', a)!, termOf('number', b)!))).toBe(
        Math.sign(a - b) || (a < b ? -1 : a > b ? 1 : 0),
      )
    }),
  )
})

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({
    unit: fc.constantFrom('a', 'é', 'e\u0301', '\u{10ffff}', '\uffff', '\ud83d\ude00'),
    minLength: 60,
    maxLength: 70,
  }),
)
const isLong = (value: string) => [...value].length > 64

it('encodes equal texts, and no others, as one term, short enough for a btree', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(termOf('text', a) === termOf('text', b)).toBe(a === b)
      expect(Buffer.byteLength(termOf('text', a)!)).toBeLessThanOrEqual(1 + 4 * 64 + 22)
    }),
  )
  for (const start of ['x'.repeat(64), 'é'.repeat(64), '\u{10000}'.repeat(64)])
    expect(new Set([start, `${start}a`, `${start}b`].map(value => termOf('text', value))).size).toBe(3)
})

it('encodes every text in order to those of at most 64 characters, and after the first 64 characters of a longer one', () => {
  fc.assert(
    fc.property(text, text, fc.nat(66), (a, b, shared) => {
      const other = [...a].slice(0, shared).join('') + b
      if (isLong(a) && isLong(other)) return
      expect(Math.sign(byteOrder(termOf('text', a)!, termOf('text', other)!))).toBe(Math.sign(byteOrder(a, other)))
    }),
  )
  fc.assert(
    fc.property(text, value => {
      const [first, last] = prefixBounds(value)
      const term = termOf('text', value)!
      expect(byteOrder(first, term) <= 0 && byteOrder(term, last) <= 0).toBe(true)
    }),
  )
})

it('gives the dates of a date attribute a kind of their own, and a text that is none the kind of texts', () => {
  const dates = ['0001-01-01', '1999-12-31', '2000-01-01', '2024-02-29', '9999-12-31']
  const terms = dates.map(date => termOf('date', date)!)
  expect(terms.toSorted(byteOrder)).toEqual(terms)
  expect(terms.every(term => term.startsWith('d'))).toBe(true)
  for (const none of ['2023-02-29', '2024-1-1', 'today']) expect(termOf('date', none)).toBe(`s${none}`)
  expect(termOf('text', '2024-02-29')).toBe('s2024-02-29')
})

it.each([
  ['1969-12-31T23:59:59.5Z', '-0.500000000'],
  ['1969-12-31T23:59:58.25Z', '-1.750000000'],
  ['1970-01-01T00:00:01.50Z', '1.5'],
  ['1970-01-01t01:00:00+01:00', '0'],
  ['0001-01-01T00:00:00+23:59', '-62135683140'],
  ['2020-02-29T12:00:00.123456789Z', '1582977600.123456789'],
])('converts the time %s to %s seconds', (text, seconds) => {
  expect(numericOf(instantOf(text))).toBe(seconds)
})

it('encodes equal times as equal terms, in order of time', () => {
  const moments = [
    '0001-01-01T00:00:00+23:59',
    '1969-12-31T23:59:59.5Z',
    '1970-01-01T00:00:00Z',
    '2020-01-01T00:00:00.1Z',
    '2020-01-01T00:00:00.11Z',
    '9999-12-31T23:59:59-23:59',
  ]
  const terms = moments.map(moment => termOf('datetime', moment)!)
  expect(terms.toSorted(byteOrder)).toEqual(terms)
  expect(termOf('datetime', '2020-01-01T01:00:00.10+01:00')).toBe(termOf('datetime', moments[3]))
})

it('gives an array one term for each distinct scalar, and none where one value is expected', () => {
  const [one, many] = [{ type: 'text', cardinality: 'one' } as const, { type: 'text', cardinality: 'many' } as const]
  expect([...termsOf(many, ['a', 'a', null, {}, 1, true])]).toEqual(['sa', termOf('text', 1), 'b1'])
  expect([...termsOf(one, ['a', 1])]).toEqual([])
  expect([...termsOf(one, 'a')]).toEqual(['sa'])
  expect([...termsOf(many, undefined)]).toEqual([])
})

it('returns bounds that include all terms of a kind', () => {
  for (const term of ['s', `s\u{10ffff}`, 'b0', termOf('number', -1)!]) {
    const [first, end] = kindBounds(term)
    expect(term >= first && term < end).toBe(true)
  }
})
