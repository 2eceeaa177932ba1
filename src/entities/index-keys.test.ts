import fc from 'fast-check'
import { expect, test } from 'vitest'
import { instantOf, numericOf } from '../attributes/instant.ts'
import { kindBounds, termOf, termsOf } from './index-keys.ts'

const byteOrder = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const number = fc.double({ noNaN: true, noDefaultInfinity: true })

test('numbers have terms that sort as they do', () => {
  fc.assert(
    fc.property(number, number, (a, b) => {
      expect(Math.sign(byteOrder(termOf('number', a)!, termOf('number', b)!))).toBe(
        Math.sign(a - b) || (a < b ? -1 : a > b ? 1 : 0),
      )
    }),
  )
})

test('texts have terms that sort as they do, or are equal, and fit a btree', () => {
  const text = fc.string({ unit: 'binary', maxLength: 200 })
  fc.assert(
    fc.property(text, text, text, (start, a, b) => {
      const [first, second] = [start + a, start + b].sort(byteOrder)
      expect(byteOrder(termOf('text', first)!, termOf('text', second)!)).toBeLessThanOrEqual(0)
      expect(Buffer.byteLength(termOf('text', first)!)).toBeLessThanOrEqual(257)
    }),
  )
})

test.each([
  ['1969-12-31T23:59:59.5Z', '-0.500000000'],
  ['1969-12-31T23:59:58.25Z', '-1.750000000'],
  ['1970-01-01T00:00:01.50Z', '1.5'],
  ['1970-01-01t01:00:00+01:00', '0'],
  ['0001-01-01T00:00:00+23:59', '-62135683140'],
  ['2020-02-29T12:00:00.1234567899Z', '1582977600.123456789'],
])('the moment %s is %s seconds', (text, seconds) => {
  expect(numericOf(instantOf(text))).toBe(seconds)
})

test('one moment has one term however it is written, and moments sort in time', () => {
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

test('an array stands under each of its scalars, once', () => {
  expect([...termsOf('text', ['a', 'a', null, {}, 1, true])]).toEqual(['sa', termOf('text', 1), 'b1'])
  expect([...termsOf('text', undefined)]).toEqual([])
})

test('all terms of a kind lie between its bounds', () => {
  for (const term of ['s', `s\u{10ffff}`, 'b0', termOf('number', -1)!]) {
    const [first, end] = kindBounds(term)
    expect(term >= first && term < end).toBe(true)
  }
})
