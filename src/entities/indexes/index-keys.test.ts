import fc from 'fast-check'
import { expect, it } from 'vitest'
import { instantOf, numericOf } from '../../instant.ts'
import { kindBounds, termOf, termsOf } from './index-keys.ts'

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

it('encodes strings as terms in the same order, short enough for a btree', () => {
  const text = fc.string({ unit: 'binary', maxLength: 200 })
  fc.assert(
    fc.property(text, text, text, (start, a, b) => {
      const [first, second] = [start + a, start + b].sort(byteOrder)
      expect(byteOrder(termOf('text', first)!, termOf('text', second)!)).toBeLessThanOrEqual(0)
      expect(Buffer.byteLength(termOf('text', first)!)).toBeLessThanOrEqual(257)
    }),
  )
})

it.each([
  ['1969-12-31T23:59:59.5Z', '-0.500000000'],
  ['1969-12-31T23:59:58.25Z', '-1.750000000'],
  ['1970-01-01T00:00:01.50Z', '1.5'],
  ['1970-01-01t01:00:00+01:00', '0'],
  ['0001-01-01T00:00:00+23:59', '-62135683140'],
  ['2020-02-29T12:00:00.1234567899Z', '1582977600.123456789'],
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
