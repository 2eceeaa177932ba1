import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../http/input/json.ts'
import { Fault } from './errors.ts'
import { coerceText } from './scalars.ts'

/** Returns the number of a JSON body with this text, or undefined if the body is refused or has no number. */
function inBody(text: string): number | undefined {
  try {
    const { n } = parseJson(Buffer.from(`{"n":${text}}`), { jsonDepth: 32 }) as { n: unknown }
    return typeof n === 'number' ? n : undefined
  } catch (error) {
    expect(error).toBeInstanceOf(Fault)
    return undefined
  }
}

describe('the text of a number in a query', () => {
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

  it('becomes the number that a JSON body has for it, and stays a text if a body refuses it', () => {
    fc.assert(
      fc.property(fc.oneof(numerals, nearly), text => {
        expect(coerceText(text, 'number')).toBe(inBody(text) ?? text)
      }),
      { numRuns: 2_000 },
    )
  })

  it('becomes every number that JSON writes, exactly', () => {
    const representable = fc.double({ noNaN: true, min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
    fc.assert(
      fc.property(representable, number => {
        expect(coerceText(JSON.stringify(number), 'number')).toBe(number === 0 ? 0 : number)
      }),
    )
  })

  it.each([
    ['1.50', 1.5],
    ['1e3', 1000],
    ['1.0', 1],
    ['2E-1', 0.2],
  ])('%s becomes %d', (text, number) => {
    expect(coerceText(text, 'number')).toBe(number)
  })

  it.each(['', ' 1', '+1', '01', '.5', '1.', '0x10', '1e400', '9007199254740993', 'NaN', 'true'])(
    '%j stays a text',
    text => {
      expect(coerceText(text, 'number')).toBe(text)
    },
  )
})

it('converts only true and false to booleans', () => {
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
