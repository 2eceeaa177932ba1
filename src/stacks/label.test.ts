import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fillLabel, labelText, maxLabelLength, parseLabel, personName } from './label.ts'

const partsOf = (template: string) => {
  const parsed = parseLabel(template)
  if ('fault' in parsed) throw new Error(parsed.fault)
  return parsed.parts
}
const fill = (template: string, values: Record<string, unknown>) =>
  fillLabel(partsOf(template), ({ key, hop }) => labelText(values[hop === undefined ? key : `${key}.${hop}`]))

describe('the template of a label', () => {
  it.each([
    ['{name}', [{ key: 'name' }]],
    ['{name} ({sku})', [{ key: 'name' }, ' (', { key: 'sku' }, ')']],
    ['{buyer.email}!', [{ key: 'buyer', hop: 'email' }, '!']],
    ['{{{a}}} }}{{', ['{', { key: 'a' }, '} }{']],
  ])('%s has the parts %j', (template, parts) => {
    expect(parseLabel(template)).toEqual({ parts })
  })

  it.each(['', 'name', '{{name}}', '{}', '{ name }', '{Name}', '{a.b.c}', '{a', 'a}', '{a}}', '{{a}', '{a{b}', '{.a}'])(
    '%j is refused',
    template => {
      expect(parseLabel(template)).toEqual({ fault: expect.any(String) })
    },
  )

  it('has a fault or parts that say the same, whatever it is', () => {
    const piece = fc.oneof(fc.constantFrom('{', '}', '{{', '}}', '{a}', '{a.b}', ' ', '('), fc.string())
    fc.assert(
      fc.property(fc.array(piece), pieces => {
        const parsed = parseLabel(pieces.join(''))
        if ('fault' in parsed) return
        const again = parsed.parts.map(part => {
          if (typeof part === 'string') return part.replace(/[{}]/g, '$&$&')
          return part.hop === undefined ? `{${part.key}}` : `{${part.key}.${part.hop}}`
        })
        expect(again.join('')).toBe(pieces.join(''))
      }),
    )
  })
})

describe('a label', () => {
  it.each([
    ['{name} ({sku})', { name: 'Cup', sku: 'C-1' }, 'Cup (C-1)'],
    ['{name} ({sku})', { name: 'Cup' }, 'Cup'],
    ['{name} ({sku})', { name: ' ', sku: 'C-1' }, '(C-1)'],
    ['{name} ({sku})', { name: null, sku: {} }, ''],
    ['{name} ({sku}, {color})', { name: 'Cup', color: 'red' }, 'Cup (red)'],
    ['{name} ({sku}, {color})', { name: 'Cup', sku: 'C-1' }, 'Cup (C-1)'],
    ['{name} ({sku}, {color})', { name: 'Cup' }, 'Cup'],
    ['{name} · {sku}', { name: 'Cup' }, 'Cup'],
    ['{name} · {sku}', { sku: 'C-1' }, 'C-1'],
    ['Order {number}', { number: 17 }, 'Order 17'],
    ['Order {number}', {}, ''],
    ['{a}, {b}, {c}', { a: '-1', c: '3-' }, '-1, 3-'],
    ['Order {number}, {buyer}', { buyer: 'Ada' }, 'Order, Ada'],
    ['{tags}', { tags: ['a', ' b\n c ', null, { d: 1 }, true] }, 'a, b c, true'],
    ['{buyer.email}', { 'buyer.email': 'ada@example.org' }, 'ada@example.org'],
  ])('%s with %j is %j', (template, values, label) => {
    expect(fill(template, values)).toBe(label)
  })

  it('has no white space at its ends and at most 200 characters, whatever the values are', () => {
    const literal = fc.oneof(fc.constantFrom(' ', ' (', ')', ', ', ' · '), fc.string())
    const part = fc.oneof(literal, fc.constantFrom({ key: 'a' }, { key: 'b' }, { key: 'c', hop: 'd' }))
    const values = fc.record({
      a: fc.jsonValue(),
      b: fc.string({ maxLength: 500, unit: 'binary' }),
      'c.d': fc.jsonValue(),
    })
    fc.assert(
      fc.property(fc.array(part), values, (parts, given) => {
        const texts: Record<string, unknown> = given
        const label = fillLabel(parts, ({ key, hop }) => labelText(texts[hop === undefined ? key : `${key}.${hop}`]))
        expect(label).toBe(label.trim())
        expect(label).not.toMatch(/\s\s|[\n\t]/)
        expect([...label].length).toBeLessThanOrEqual(maxLabelLength)
        expect(label.isWellFormed()).toBe(true)
      }),
    )
  })
})

const nobody = { first_name: null, last_name: null, email: null, mobile_prefix: null, mobile_number: null }

it.each([
  [{ first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.org' }, 'Ada Lovelace'],
  [{ last_name: ' Lovelace' }, 'Lovelace'],
  [{ first_name: ' ', email: 'ada@example.org', mobile_number: '1' }, 'ada@example.org'],
  [{ mobile_prefix: '+39', mobile_number: '333 1' }, '+39 333 1'],
  [{ mobile_prefix: '+39' }, ''],
  [{}, ''],
])('the name of a person with %j is %j', (person, name) => {
  expect(personName({ ...nobody, ...person })).toBe(name)
})
