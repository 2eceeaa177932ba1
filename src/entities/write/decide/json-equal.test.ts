import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { useService } from '../../../../test/support/service.ts'
import { useShop } from '../../../../test/support/shop.ts'
import { jsonEqual } from './json-equal.ts'

const parse = (text: string): unknown => JSON.parse(text)

/** Returns JSON text with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join()}}`
}

/** Returns the same value with the keys of its objects in reverse order. */
function withReversedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReversedKeys)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}:${JSON.stringify(withReversedKeys(member))}`,
  )
  return parse(`{${members.reverse().join()}}`)
}

// Few keys and scalars, so that two values are often nearly equal.
const key = fc.constantFrom('a', '0', '__proto__', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', 'length')
const scalar = fc.constantFrom<unknown>(null, true, false, 0, -0, 1, '', '0', 'a')
const { value } = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .uniqueArray(fc.tuple(key, tie('value')), { maxLength: 3, selector: ([name]) => name })
      .map(members => parse(`{${members.map(([name, member]) => `"${name}":${JSON.stringify(member)}`).join()}}`)),
  ),
}))

describe('two JSON values', () => {
  it('are equal if and only if their canonical texts are equal', () => {
    fc.assert(
      fc.property(value, value, (one, other) => {
        expect(jsonEqual(one, other)).toBe(canonical(one) === canonical(other))
        expect(jsonEqual(other, one)).toBe(jsonEqual(one, other))
      }),
      { numRuns: 2_000 },
    )
  })

  it('are equal if one is a copy with its keys in any order', () => {
    fc.assert(
      fc.property(fc.oneof(value, fc.jsonValue()), one => {
        expect(jsonEqual(one, parse(JSON.stringify(one)))).toBe(true)
        expect(jsonEqual(one, withReversedKeys(one))).toBe(true)
      }),
    )
  })

  it.each([
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{"__proto__":{}}', '{"a":{}}'],
    ['{"toString":null}', '{"valueOf":null}'],
    ['{"constructor":{"a":1}}', '{"constructor":{"a":2}}'],
    ['{"length":0}', '[]'],
    ['{"0":"a"}', '["a"]'],
    ['["a","b"]', '["b","a"]'],
    ['[null]', '[]'],
    ['{"a":null}', '{}'],
    ['"0"', '0'],
    ['null', '{}'],
  ])('are different: %s and %s', (one, other) => {
    expect(jsonEqual(parse(one), parse(other))).toBe(false)
    expect(jsonEqual(parse(one), parse(one))).toBe(true)
  })

  it('are compared without calling their methods', () => {
    const calling = () => {
      throw new Error('was called')
    }
    const one = { valueOf: calling, toString: calling, toJSON: calling, hasOwnProperty: calling }
    expect(jsonEqual(one, { ...one })).toBe(true)
  })
})

describe('a repeated write through HTTP', () => {
  const service = useService()
  const { send } = useShop(service)
  beforeEach(async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
  })

  it.each([
    '{"valueOf":1}',
    '{"toString":null}',
    '{"constructor":{"a":1}}',
    '{"toJSON":1,"then":1,"length":1}',
    '[{"valueOf":{"toString":[]}}]',
  ])('makes no second change: %s', async text => {
    const body = `{"attribute_values":{"x":${text}}}`
    for (const _ of ['first', 'second']) {
      const reply = await send('PATCH', '/v1/people/ada', body)
      expect([reply.status, reply.headers.get('etag')]).toEqual([200, '"2"'])
    }
    expect((await send('PUT', '/v1/people/ada', body)).headers.get('etag')).toBe('"2"')
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ x: parse(text) })
  })
})
