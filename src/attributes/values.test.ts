import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { someRuns } from '../../test/support/runs.ts'
import { type Send, useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { send } = useShop(service, 'orders')

const declare = (body: object) => send('POST', '/v1/schema/attributes', { key: 'a', owner: 'people', ...body })
const paths = (reply: Awaited<ReturnType<Send>>) => reply.body.details?.map(detail => detail.path)

const validValues: Record<string, unknown[]> = {
  text: ['x', '', '7', 'true', '2024-02-29'],
  number: [0, -1.5, 1e-7, 2 ** 53 - 1],
  boolean: [true, false],
  date: ['2024-02-29', '0001-01-01', '9999-12-31'],
  datetime: ['2026-01-01T10:00:00Z', '2026-01-01T10:00:00.123456+02:00', '1969-12-31t23:59:59z'],
  json: ['x', 7, true, [1, [null]], { deep: { er: null } }],
}

const invalidValues: Record<string, unknown[]> = {
  text: [7, true, ['x'], { x: 'x' }],
  number: ['7', true, [7], { x: 7 }],
  boolean: ['true', 0, 1, [true]],
  date: ['2023-02-29', '2024-2-29', '29.02.2024', '2024-02-29T00:00:00Z', '0000-01-01', '', 20240229],
  datetime: [
    '2026-01-01',
    '2026-01-01T10:00:00',
    '2026-01-01T24:00:00Z',
    '2026-01-01T10:00:60Z',
    '2026-02-30T10:00:00Z',
    0,
  ],
}

const addresses = [
  ['people', '/v1/people', '/v1/people/ada'],
  ['orders', '/v1/stacks/orders', '/v1/stacks/orders/ada'],
] as const

describe.each(addresses)('a declared key of %s', (owner, collection, address) => {
  const shown = async () => (await send('GET', address)).body.data

  it.each(Object.entries(validValues))('has type %s: it accepts each of %j and reads it back', async (type, values) => {
    await declare({ type, owner })
    await send('POST', collection, { external_id: 'ada' })
    for (const value of values) {
      expect((await send('PATCH', address, { attribute_values: { a: value } })).status).toBe(200)
      expect((await shown()).attribute_values).toEqual({ a: value })
    }
  })

  it.each(Object.entries(invalidValues))('has type %s: it refuses each of %j with its path', async (type, values) => {
    await declare({ type, owner })
    await send('POST', collection, {
      external_id: 'ada',
      attribute_values: { a: validValues[type]![0], b: 'undeclared' },
    })
    const before = await shown()
    for (const value of values)
      for (const method of ['PATCH', 'PUT']) {
        const reply = await send(method, address, { attribute_values: { c: 1, a: value } })
        expect([reply.status, reply.body.error, paths(reply)]).toEqual([
          400,
          'invalid_parameter',
          ['/attribute_values/a'],
        ])
      }
    expect(await shown()).toEqual(before)
  })

  it('refuses the first invalid element if its cardinality is many', async () => {
    await declare({ type: 'date', owner, cardinality: 'many' })
    await send('POST', collection, { external_id: 'ada', attribute_values: { a: ['2024-02-29'] } })
    for (const [value, where] of [
      ['2024-02-29', '/attribute_values/a'],
      [{ 0: '2024-02-29' }, '/attribute_values/a'],
      [['2024-02-29', '2023-02-29', 7], '/attribute_values/a/1'],
      [['2024-02-29', null], '/attribute_values/a/1'],
      [[['2024-02-29']], '/attribute_values/a/0'],
    ] as const)
      expect(paths(await send('PATCH', address, { attribute_values: { a: value } }))).toEqual([where])
    expect((await shown()).attribute_values).toEqual({ a: ['2024-02-29'] })
    await send('PATCH', address, { attribute_values: { a: [] } })
    expect((await shown()).attribute_values).toEqual({ a: [] })
  })
})

it('a refusal names every invalid value, not only the first', async () => {
  await declare({ type: 'number' })
  await declare({ type: 'date', key: 'b' })
  const reply = await send('POST', '/v1/people', { attribute_values: { a: 'x', b: 'y', c: 'z' } })
  expect(paths(reply)).toEqual(['/attribute_values/a', '/attribute_values/b'])
})

it('a refusal escapes a slash or a tilde of a key as a JSON Pointer does', async () => {
  const reply = await send('POST', '/v1/people', '{"attribute_values":{"a/b~c":{"d":1e999}}}')
  expect([reply.status, paths(reply)]).toEqual([400, ['/attribute_values/a~1b~0c/d']])
})

describe('an undeclared key', () => {
  const isStorable = (value: unknown): boolean => {
    if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0') && value === value.trim()
    if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
    if (typeof value !== 'object' || value === null) return true
    return Object.entries(value).every(
      ([key, inner]) => key !== '__proto__' && !key.includes('\0') && isStorable(inner),
    )
  }

  it('accepts any JSON value and reads it back equal', async () => {
    const { id } = (await send('POST', '/v1/people', {})).body.data
    const value = fc.jsonValue({ maxDepth: 3 }).filter(given => given !== null && isStorable(given))
    await fc.assert(
      fc.asyncProperty(value, async given => {
        const address = `/v1/people/internal/${id}`
        expect((await send('PATCH', address, { attribute_values: { free: given } })).status).toBe(200)
        // JSON.stringify turns -0 into 0.
        const sent = JSON.parse(JSON.stringify(given))
        expect((await send('GET', address)).body.data.attribute_values).toEqual({ free: sent })
      }),
      someRuns(60),
    )
  })
})

describe('a value in a query string', () => {
  beforeEach(async () => {
    for (const type of Object.keys(validValues)) await declare({ type, key: type })
    await declare({ type: 'number', key: 'numbers', cardinality: 'many' })
    await declare({ type: 'person', key: 'friend' })
    await send('POST', '/v1/people', { external_id: 'ada' })
  })
  const patch = (query: Record<string, string>) => send('PATCH', `/v1/people/ada?${new URLSearchParams(query)}`)
  const values = async () => (await send('GET', '/v1/people/ada')).body.data.attribute_values

  it.each([
    ['number', '-1.5', -1.5],
    ['number', '0', 0],
    ['number', '9007199254740991', 9007199254740991],
    ['number', '1.50', 1.5],
    ['number', '1e3', 1000],
    ['number', ' 2.5E-1 ', 0.25],
    ['0', 'a', 'a'],
    ['007', 'a', 'a'],
    ['boolean', 'true', true],
    ['boolean', 'false', false],
    ['text', '7', '7'],
    ['text', 'true', 'true'],
    ['date', '2024-02-29', '2024-02-29'],
    ['datetime', '2026-01-01T10:00:00+02:00', '2026-01-01T10:00:00+02:00'],
    ['json', '7', '7'],
    ['undeclared', '7', '7'],
    ['undeclared', 'true', 'true'],
    ['undeclared', ' null ', 'null'],
  ])('sets the key %s: %j is stored as %j', async (key, text, value) => {
    expect((await patch({ [`attribute_values[${key}]`]: text })).status).toBe(200)
    expect(await values()).toEqual({ [key]: value })
  })

  it.each([
    ['number', 'many'],
    ['number', ''],
    ['number', '0x10'],
    ['number', '007'],
    ['number', '9007199254740993'],
    ['number', '0.1000000000000000055'],
    ['number', '1e400'],
    ['number', 'Infinity'],
    ['boolean', '1'],
    ['boolean', 'True'],
    ['date', '2023-02-29'],
    ['datetime', '2026-01-01'],
    ['numbers', '7'],
  ])('sets the key %s: %j is refused', async (key, text) => {
    const reply = await patch({ [`attribute_values[${key}]`]: text })
    expect([reply.status, reply.body.error, paths(reply)]).toEqual([
      400,
      'invalid_parameter',
      [`/attribute_values/${key}`],
    ])
    expect(await values()).toEqual({})
  })

  it('can be a list of its type, or the name of a relationship target', async () => {
    const query = {
      'attribute_values[numbers][0]': '1',
      'attribute_values[numbers][1]': '2.5',
      'attribute_values[friend]': '7',
    }
    expect((await patch(query)).status).toBe(200)
    expect(await values()).toEqual({ numbers: [1, 2.5], friend: '7' })
    const reply = await patch({ 'attribute_values[numbers][0]': '1', 'attribute_values[numbers][1]': 'x' })
    expect(paths(reply)).toEqual(['/attribute_values/numbers/1'])
  })

  it('keeps keys that look like indexes', async () => {
    expect((await patch({ 'attribute_values[1]': 'b', 'attribute_values[free][0]': 'c' })).status).toBe(200)
    expect(await values()).toEqual({ 1: 'b', free: ['c'] })
    const reply = await patch({ 'attribute_values[free][1]': 'c' })
    expect([reply.status, paths(reply)]).toEqual([400, ['/attribute_values/free']])
  })

  it('is ignored if there is a JSON body', async () => {
    await send('PATCH', '/v1/people/ada?attribute_values[number]=1', { attribute_values: { number: 2 } })
    expect(await values()).toEqual({ number: 2 })
  })
})
