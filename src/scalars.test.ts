import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Fault } from './errors.ts'
import { parseJson } from './http/input/json.ts'
import { coerceText } from './scalars.ts'

/** The number that a body has there; undefined where it is refused, or has something else. */
function inBody(text: string): number | undefined {
  try {
    const { n } = parseJson(Buffer.from(`{"n":${text}}`), { jsonDepth: 32 }) as { n: unknown }
    return typeof n === 'number' ? n : undefined
  } catch (error) {
    expect(error).toBeInstanceOf(Fault)
    return undefined
  }
}

describe('a text for a number', () => {
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 18 })
  const exponent = fc.integer({ min: -330, max: 310 }).map(power => `e${power}`)
  const numerals = fc
    .tuple(
      fc.constantFrom('', '-'),
      digits,
      fc.oneof(
        fc.constant(''),
        digits.map(text => `.${text}`),
      ),
    )
    .chain(parts => fc.oneof(fc.constant(''), exponent).map(power => [...parts, power].join('')))
  const nearly = fc.string({ unit: fc.constantFrom(...'01259.-+eE'), maxLength: 8 })

  test('is the number that a body has for it, and stays a text where a body is refused', () => {
    fc.assert(
      fc.property(fc.oneof(numerals, nearly), text => {
        expect(coerceText(text, 'number')).toBe(inBody(text) ?? text)
      }),
      { numRuns: 2_000 },
    )
  })

  test('is every number that JSON writes, and no other value', () => {
    const kept = fc.double({ noNaN: true, min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
    fc.assert(
      fc.property(kept, number => {
        expect(coerceText(JSON.stringify(number), 'number')).toBe(number === 0 ? 0 : number)
      }),
    )
  })

  test.each([
    ['1.50', 1.5],
    ['1e3', 1000],
    ['1.0', 1],
    ['2E-1', 0.2],
  ])('%s is %d', (text, number) => {
    expect(coerceText(text, 'number')).toBe(number)
  })

  test.each(['', ' 1', '+1', '01', '.5', '1.', '0x10', '1e400', '9007199254740993', 'NaN', 'true'])(
    '%j is none',
    text => {
      expect(coerceText(text, 'number')).toBe(text)
    },
  )
})

test('A text for a boolean is true or false, as JSON writes them', () => {
  expect(['true', 'false', 'TRUE', '1', '0', '', ' true'].map(text => coerceText(text, 'boolean'))).toEqual([
    true,
    false,
    'TRUE',
    '1',
    '0',
    '',
    ' true',
  ])
})
