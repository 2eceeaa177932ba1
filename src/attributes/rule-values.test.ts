import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Attribute } from '../organizations/definitions.ts'
import { brokenRules, ruleFault } from './rules.ts'

const time = () => ({ spentMs: 0 })
const attributeOf = (rules: object): Attribute =>
  ({ id: 1, key: 'a', cardinality: 'one', indexed: false, state: 'active', ...rules }) as Attribute

const numbers = fc.oneof(fc.integer({ min: -20, max: 20 }), fc.double({ noNaN: true, noDefaultInfinity: true }))
const dates = fc
  .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  .map(date => date.toISOString().slice(0, 10))
/** A time, and the same time in milliseconds. */
const moments = fc
  .tuple(fc.integer({ min: -2_000, max: 2_000 }), fc.integer({ min: -720, max: 720 }))
  .map(([ms, offsetMinutes]) => {
    const at = 1_700_000_000_000 + ms
    const local = new Date(at + offsetMinutes * 60_000).toISOString().slice(0, -1)
    const digits = (number: number) => String(number).padStart(2, '0')
    const [hours, minutes] = [Math.trunc(Math.abs(offsetMinutes) / 60), Math.abs(offsetMinutes) % 60]
    return { at, text: `${local}${offsetMinutes < 0 ? '-' : '+'}${digits(hours)}:${digits(minutes)}` }
  })

describe('the bounds of a value', () => {
  it('hold for numbers as for the numbers themselves', () => {
    fc.assert(
      fc.property(numbers, numbers, numbers, (value, minimum, maximum) => {
        const broken = brokenRules(attributeOf({ type: 'number', minimum, maximum }), value, time)
        expect(broken).toEqual([...(value < minimum ? ['minimum'] : []), ...(value > maximum ? ['maximum'] : [])])
      }),
    )
  })

  it('hold for dates as their texts are ordered', () => {
    fc.assert(
      fc.property(dates, dates, (value, minimum) => {
        const fault = ruleFault(attributeOf({ type: 'date', minimum }), value, time)
        expect(fault === undefined).toBe(value >= minimum)
      }),
    )
  })

  it('hold for times as the moments are ordered, whatever their offsets', () => {
    fc.assert(
      fc.property(moments, moments, (value, maximum) => {
        const fault = ruleFault(attributeOf({ type: 'datetime', maximum: maximum.text }), value.text, time)
        expect(fault === undefined).toBe(value.at <= maximum.at)
      }),
    )
  })
})

describe('the rules of a value', () => {
  it('of an enum hold for exactly its values, and for each element of a list', () => {
    const letters = fc.constantFrom('a', 'b', 'c', 'd', 'A', '')
    fc.assert(
      fc.property(fc.uniqueArray(letters, { minLength: 1 }), fc.array(letters), (allowed, value) => {
        const fault = ruleFault(attributeOf({ type: 'text', cardinality: 'many', enum: allowed }), value, time)
        const index = value.findIndex(element => !allowed.includes(element))
        expect(fault?.path).toEqual(index === -1 ? undefined : [index])
      }),
    )
  })

  it('of a pattern hold as in JavaScript, for patterns that both understand', () => {
    const patterns = fc.constantFrom('^a+$', 'b', '^(ab|ba)*$', '[^a]', 'a{2,3}', '^.{1,3}$', 'a.?b', '\\d')
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', '1', '\n', 'é', '😀'), maxLength: 8 })
    fc.assert(
      fc.property(patterns, texts, (pattern, value) => {
        const fault = ruleFault(attributeOf({ type: 'text', pattern }), value, time)
        expect(fault === undefined).toBe(new RegExp(pattern, 'u').test(value))
      }),
      { numRuns: 500 },
    )
  })

  it('of a pattern are not compared once the patterns of the request have taken half a second', () => {
    const attribute = attributeOf({ type: 'text', pattern: 'a' })
    expect(ruleFault(attribute, 'a', () => ({ spentMs: 499 }))).toBeUndefined()
    expect(ruleFault(attribute, 'a', () => ({ spentMs: 501 }))?.message).toMatch(/^cannot be compared with a: /)
  })

  it('of a pattern add up the time of a request', () => {
    const spent = { spentMs: 0 }
    const attribute = attributeOf({ type: 'text', pattern: '[abc]*a[abc]{400}[de]' })
    ruleFault(attribute, 'abcacbbacbd'.repeat(300), () => spent)
    expect(spent.spentMs).toBeGreaterThan(0)
  })

  it('that an attribute does not have hold for everything', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(ruleFault(attributeOf({ type: 'json' }), value, time)).toBeUndefined()
      }),
    )
  })
})
