import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Send, type Service, startService } from '../../test/support/service.ts'

let service: Service
let send: Send
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  send = (await service.organization()).send
  await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
})

const path = '/v1/schema/attributes'
const declare = (body: object) => send('POST', path, { key: 'a', owner: 'people', ...body })
const write = (value: unknown) => send('POST', '/v1/people', { external_id: 'ada', attribute_values: { a: value } })

describe('a declaration', () => {
  test('has defaults, an address, and may be changed where it may', async () => {
    const created = await declare({ type: 'stack', target_stack: 'orders' })
    expect([created.status, created.headers.get('location')]).toEqual([201, `${path}/1`])
    expect(created.body.data).toMatchObject({
      id: 1,
      key: 'a',
      name: 'a',
      description: null,
      owner: 'people',
      type: 'stack',
      target_stack: 'orders',
      cardinality: 'one',
      indexed: false,
      state: 'active',
    })
    const patched = await send('PATCH', `${path}/1`, { name: 'Orders', cardinality: 'many', description: 'bought' })
    expect(patched.body.data).toMatchObject({ name: 'Orders', cardinality: 'many', description: 'bought' })
    expect((await send('GET', `${path}/1`)).body.data).toEqual(patched.body.data)
    expect((await send('GET', path)).body.data.items).toEqual([patched.body.data])
  })

  test.each([
    [{ type: 'words' }, 400, '/type'],
    [{}, 400, '/type'],
    [{ type: 'text', key: 'A' }, 400, '/key'],
    [{ type: 'text', key: 'x'.repeat(64) }, 400, '/key'],
    [{ type: 'text', owner: 'nothing' }, 400, '/owner'],
    [{ type: 'stack' }, 400, '/target_stack'],
    [{ type: 'stack', target_stack: 'nothing' }, 400, '/target_stack'],
    [{ type: 'text', target_stack: 'orders' }, 400, '/target_stack'],
    [{ type: 'json', indexed: true }, 400, '/indexed'],
    [{ type: 'text', cardinality: 'few' }, 400, '/cardinality'],
    [{ type: 'text', state: 'archived' }, 400, '/state'],
    [{ type: 'text', key: 'taken' }, 409, '/key'],
  ])('%j is %i at %s', async (body, status, where) => {
    await declare({ type: 'text', key: 'taken' })
    const reply = await declare(body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [where]])
    expect((await send('GET', path)).body.data.items).toHaveLength(1)
  })

  test.each(['key', 'owner', 'type', 'target_stack'])('never changes its %s', async field => {
    await declare({ type: 'text' })
    const reply = await send('PATCH', `${path}/1`, { [field]: 'text' })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [`/${field}`]])
  })
})

describe('a declared key', () => {
  test.each([
    ['text', 'x', 1],
    ['number', 1.5, '1.5'],
    ['boolean', false, 'false'],
    ['date', '2024-02-29', '2023-02-29'],
    ['datetime', '2026-01-01T10:00:00+02:00', '2026-01-01T10:00:00'],
  ])('of type %s takes %j and refuses %j', async (type, fits, other) => {
    await declare({ type })
    const reply = await write(other)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/a'])
    expect((await write(fits)).body.data.attribute_values).toEqual({ a: fits })
  })

  test('of type json takes anything, and null clears any', async () => {
    await declare({ type: 'json' })
    const value = { deep: [1, null, { a: 'b' }] }
    expect((await write(value)).body.data.attribute_values).toEqual({ a: value })
    await send('PATCH', '/v1/people/ada', { attribute_values: { a: null } })
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({})
  })

  test('of many takes an array of its type', async () => {
    await declare({ type: 'number', cardinality: 'many' })
    for (const [value, where] of [
      [1, '/attribute_values/a'],
      [[1, 'x'], '/attribute_values/a/1'],
      [[null], '/attribute_values/a/0'],
    ])
      expect((await write(value)).body.details?.map(detail => detail.path)).toEqual([where])
    expect((await write([1, 2])).body.data.attribute_values).toEqual({ a: [1, 2] })
  })

  test('is coerced from a query string; an undeclared one stays a text', async () => {
    await declare({ type: 'number' })
    await declare({ type: 'boolean', key: 'b' })
    await send('POST', '/v1/people', { external_id: 'ada' })
    const query = 'attribute_values[a]=1.5&attribute_values[b]=true&attribute_values[c]=7&email_consent=false'
    expect((await send('PATCH', `/v1/people/ada?${query}`)).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({
      attribute_values: { a: 1.5, b: true, c: '7' },
      email_consent: false,
    })
    const reply = await send('PATCH', '/v1/people/ada?attribute_values[a]=many')
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/a'])
  })

  test('leaves what was stored before it as it is, until it is written', async () => {
    await write('text')
    await declare({ type: 'number' })
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ a: 'text' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 'text' } })).status).toBe(400)
    await send('PATCH', `${path}/1`, { state: 'archived' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: ['any'] } })).status).toBe(200)
  })
})

describe('a stack', () => {
  test.each([
    [{ key: 'people', kind: 'item' }, 400, '/key'],
    [{ key: 'visits' }, 400, '/kind'],
    [{ key: 'visits', kind: 'thing' }, 400, '/kind'],
    [{ key: 'Visits', kind: 'item' }, 400, '/key'],
    [{ key: 'orders', kind: 'item' }, 409, '/key'],
  ])('%j is %i at %s', async (body, status, where) => {
    const reply = await send('POST', '/v1/schema/stacks', body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [where]])
  })

  test('is renamed, and never changes its kind', async () => {
    expect((await send('PATCH', '/v1/schema/stacks/orders', { name: 'Orders' })).body.data.name).toBe('Orders')
    expect((await send('PATCH', '/v1/schema/stacks/orders', { kind: 'event' })).status).toBe(400)
    expect((await send('GET', '/v1/schema/stacks/orders')).body.data).toMatchObject({ kind: 'item', name: 'Orders' })
    expect((await send('GET', '/v1/schema/stacks/nothing')).status).toBe(404)
  })
})
