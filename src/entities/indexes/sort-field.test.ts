import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { compareByCodePoint, noValueTerm, sortTermOf } from './sort-field.ts'

const byBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))
/** Sorts values by their terms, as PostgreSQL does by code point. */
const sorted = (type: AttributeType, values: readonly unknown[]) =>
  values.toSorted((one, other) => byBytes(sortTermOf(type, one), sortTermOf(type, other)))

const wellFormed = fc.string({ unit: 'binary', maxLength: 80 })

describe('the sort term of a text', () => {
  it('orders by letters without case and accents, then by the text itself', () => {
    const order = [
      '',
      ' a',
      '1',
      '10',
      '2',
      'ab',
      'Ada',
      'ada',
      'Äda',
      'adam',
      'Ärzte',
      'Éva',
      'eva 2',
      'Ñandú',
      'nandu2',
      'o',
      'Z',
    ]
    for (const type of ['text', 'date', 'number'] as const) expect(sorted(type, order.toReversed())).toEqual(order)
  })

  it('equals that of another text only if their first 64 characters are equal', () => {
    fc.assert(
      fc.property(wellFormed, wellFormed, (one, other) => {
        const first = (text: string) => [...text].slice(0, 64).join('')
        expect(sortTermOf('text', one) === sortTermOf('text', other)).toBe(first(one) === first(other))
      }),
      {
        examples: [
          ['x'.repeat(70), `${'x'.repeat(64)}y`],
          ['😀'.repeat(64), '😀'.repeat(65)],
        ],
      },
    )
  })

  it('places a text right after its own capitals and accents, and before each longer text', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,20}$/), fc.stringMatching(/^[a-z ]{1,20}$/), (word, more) => {
        const variants = [word.toUpperCase(), word, `${word[0]}\u0301${word.slice(1)}`]
        const longer = word + more
        const terms = variants.map(text => sortTermOf('text', text))
        for (const term of terms) expect(byBytes(term, sortTermOf('text', longer))).toBeLessThan(0)
      }),
    )
  })

  it('fits in a key of the index', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), text => {
        expect(Buffer.byteLength(sortTermOf('text', text))).toBeLessThanOrEqual(2 + 2 * 64 * 4)
      }),
      { examples: [['ﷺ'.repeat(64)], ['👩‍👩‍👧'.repeat(100)], ['\u0301'.repeat(200)]] },
    )
  })

  it('is not confused by control characters', () => {
    const order = ['a', 'a\u0001', 'a\u0001b', 'ab', 'a\u0001c']
    // A control character counts only between texts that are equal otherwise.
    expect(sorted('text', order.toReversed())).toEqual(['a', 'a\u0001', 'a\u0001b', 'ab', 'a\u0001c'])
  })
})

describe('the sort term of another value', () => {
  it('orders numbers, dates and times by value', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.double({ noNaN: true }).map(value => value + 0)), values => {
        expect(sorted('number', values)).toEqual(values.toSorted((one, other) => one - other))
      }),
    )
    const times = [
      '0001-01-01T00:00:00Z',
      '1969-12-31T23:59:59.9Z',
      '2020-01-01T00:00:00+02:00',
      '2019-12-31T22:00:01z',
    ]
    expect(sorted('datetime', times.toReversed())).toEqual(times)
    const dates = ['0001-01-01', '1999-12-31', '2000-01-01']
    expect(sorted('date', dates.toReversed())).toEqual(dates)
  })

  it('puts what has no value, arrays and objects last and together', () => {
    for (const value of [null, undefined, [], [1], {}, { a: 1 }]) expect(sortTermOf('text', value)).toBe(noValueTerm)
    fc.assert(
      fc.property(fc.oneof(wellFormed, fc.double({ noNaN: true }), fc.boolean()), value => {
        for (const type of ['text', 'number', 'datetime'] as const)
          expect(byBytes(sortTermOf(type, value), noValueTerm)).toBeLessThan(0)
      }),
    )
  })

  it('separates values of different kinds', () => {
    const values = [false, true, '2020-01-01T00:00:00Z', -1, 1, 'text']
    expect(sorted('datetime', values.toReversed())).toEqual(values)
  })
})

it('texts are compared by code point as PostgreSQL compares their bytes', () => {
  fc.assert(
    fc.property(wellFormed, wellFormed, (one, other) => {
      expect(Math.sign(compareByCodePoint(one, other))).toBe(Math.sign(byBytes(one, other)))
    }),
    {
      examples: [
        ['\u{10000}', '\uffff'],
        ['a\u{1f600}', 'a\ue000'],
      ],
    },
  )
})
