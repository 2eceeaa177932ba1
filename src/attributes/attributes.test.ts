import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { send } = useShop(service, 'orders')

const path = '/v1/schema/attributes'
const declare = (body: object) => send('POST', path, { key: 'a', owner: 'people', ...body })
const write = (value: unknown) => send('POST', '/v1/people', { external_id: 'ada', attribute_values: { a: value } })

describe('a declaration', () => {
  it('has defaults and a Location, and its name, description and cardinality can be changed', async () => {
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

  it.each([
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
  ])('refuses %j with %i at %s', async (body, status, where) => {
    await declare({ type: 'text', key: 'taken' })
    const reply = await declare(body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [where]])
    expect((await send('GET', path)).body.data.items).toHaveLength(1)
  })

  it.each(['key', 'owner', 'type', 'target_stack'])('cannot change its %s', async field => {
    await declare({ type: 'text' })
    const reply = await send('PATCH', `${path}/1`, { [field]: 'text' })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [`/${field}`]])
  })
})

describe('a declared key', () => {
  it.each([
    ['text', 'x', 1],
    ['number', 1.5, '1.5'],
    ['boolean', false, 'false'],
    ['date', '2024-02-29', '2023-02-29'],
    ['datetime', '2026-01-01T10:00:00+02:00', '2026-01-01T10:00:00'],
  ])('has type %s: it accepts %j and refuses %j', async (type, fits, other) => {
    await declare({ type })
    const reply = await write(other)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/a'])
    expect((await write(fits)).body.data.attribute_values).toEqual({ a: fits })
  })

  it('accepts any value if its type is json, and null clears it', async () => {
    await declare({ type: 'json' })
    const value = { deep: [1, null, { a: 'b' }] }
    expect((await write(value)).body.data.attribute_values).toEqual({ a: value })
    await send('PATCH', '/v1/people/ada', { attribute_values: { a: null } })
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({})
  })

  it('accepts an array of its type if its cardinality is many', async () => {
    await declare({ type: 'number', cardinality: 'many' })
    for (const [value, where] of [
      [1, '/attribute_values/a'],
      [[1, 'x'], '/attribute_values/a/1'],
      [[null], '/attribute_values/a/0'],
    ])
      expect((await write(value)).body.details?.map(detail => detail.path)).toEqual([where])
    expect((await write([1, 2])).body.data.attribute_values).toEqual({ a: [1, 2] })
  })

  it('is converted from a query string, while an undeclared key stays a text', async () => {
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

  it('leaves values stored before the declaration unchanged until they are written', async () => {
    await write('text')
    await declare({ type: 'number' })
    expect((await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })).status).toBe(200)
    expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ a: 'text' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 'text' } })).status).toBe(400)
    await send('PATCH', `${path}/1`, { state: 'archived' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: ['any'] } })).status).toBe(200)
  })
})

describe('an invalid request', () => {
  const stored = async () => ({
    attributes: (await send('GET', path)).body.data.items,
    stacks: (await send('GET', '/v1/schema/stacks')).body.data.items,
  })

  it.each([
    [{ type: 'text', key: undefined }, 'invalid_parameter', '/key'],
    [{ type: 'text', owner: undefined }, 'invalid_parameter', '/owner'],
    [{ type: 'text', key: 'a.b' }, 'invalid_parameter', '/key'],
    [{ type: 'text', name: '' }, 'invalid_parameter', '/name'],
    [{ type: 'text', name: 'x'.repeat(256) }, 'invalid_parameter', '/name'],
    [{ type: 'text', description: 'x'.repeat(2_001) }, 'invalid_parameter', '/description'],
    [{ type: 'text', sort: 1 }, 'invalid_parameter', '/sort'],
    [{ type: 'text', owner: 'Orders' }, 'invalid_parameter', '/owner'],
    [{ type: 'person', target_stack: 'orders' }, 'invalid_parameter', '/target_stack'],
    [{ type: 'stack', target_stack: 'people' }, 'invalid_parameter', '/target_stack'],
    [{ type: 'stack', target_stack: null }, 'invalid_parameter', '/target_stack'],
    [{ type: 7 }, 'invalid_json', '/type'],
    [{ type: 'text', indexed: 'yes' }, 'invalid_json', '/indexed'],
    [{ type: 'text', description: 7 }, 'invalid_json', '/description'],
  ])('declares %j, gets 400 %s at %s and stores nothing', async (body, code, where) => {
    const before = await stored()
    const reply = await declare(body)
    expect([reply.status, reply.body.error, reply.body.details?.map(detail => detail.path)]).toEqual([
      400,
      code,
      [where],
    ])
    expect(await stored()).toEqual(before)
  })

  it.each([
    [{ cardinality: 'one' }, 400, '/cardinality'],
    [{ cardinality: 'few' }, 400, '/cardinality'],
    [{ name: ' ' }, 400, '/name'],
    [{ state: 'deleted' }, 400, '/state'],
    [{ indexed: true }, 400, '/indexed'],
    [{ id: 2 }, 400, '/id'],
  ])('patches %j, gets %i at %s and stores nothing', async (body, status, where) => {
    await declare({ type: 'json', cardinality: 'many' })
    const before = await stored()
    const reply = await send('PATCH', `${path}/1`, { description: 'new', ...body })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([status, [where]])
    expect(await stored()).toEqual(before)
  })

  it.each([
    ['GET', `${path}/2`, 404],
    ['PATCH', `${path}/2`, 404],
    ['GET', `${path}/0`, 400],
    ['PATCH', `${path}/one`, 400],
    ['DELETE', `${path}/1`, 405],
  ])('%s %s returns %i', async (method, address, status) => {
    await declare({ type: 'text' })
    expect((await send(method, address, method === 'PATCH' ? {} : undefined)).status).toBe(status)
  })

  it('gets 409 if another of ten concurrent requests declares the key first', async () => {
    const replies = await Promise.all(Array.from({ length: 10 }, () => declare({ type: 'text' })))
    expect(replies.map(reply => reply.status).sort()).toEqual([201, ...Array(9).fill(409)])
    expect((await stored()).attributes).toHaveLength(1)
  })
})

describe('an archived attribute', () => {
  it('keeps its id, counts as undeclared, and frees its key for a new declaration', async () => {
    await declare({ type: 'text' })
    await write('stored')
    expect((await send('PATCH', `${path}/1`, { state: 'archived' })).body.data).toMatchObject({ state: 'archived' })
    const again = await declare({ type: 'number' })
    expect([again.status, again.body.data.id]).toEqual([201, 2])
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({
      version: 1,
      attribute_values: { a: 'stored' },
    })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 'new' } })).status).toBe(400)
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 7 } })).status).toBe(200)
    expect((await send('GET', path)).body.data.items).toMatchObject([
      { id: 1, type: 'text', state: 'archived' },
      { id: 2, type: 'number', state: 'active' },
    ])
  })

  it('can be activated again unless its key was declared again', async () => {
    await declare({ type: 'text' })
    await send('PATCH', `${path}/1`, { state: 'archived' })
    expect((await send('PATCH', `${path}/1`, { state: 'active' })).body.data.state).toBe('active')
    await send('PATCH', `${path}/1`, { state: 'archived' })
    await declare({ type: 'number' })
    const reply = await send('PATCH', `${path}/1`, { state: 'active', name: 'Back' })
    expect([reply.status, reply.body.error, reply.body.details?.[0]?.path]).toEqual([409, 'duplicate_entry', '/key'])
    expect((await send('GET', `${path}/1`)).body.data).toMatchObject({ state: 'archived', name: 'a' })
  })
})

it('after a change from one to many, stored values read unchanged and new values must be arrays', async () => {
  await declare({ type: 'text' })
  await write('single')
  expect((await send('PATCH', `${path}/1`, { cardinality: 'many' })).body.data.cardinality).toBe('many')
  expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ a: 'single' })
  expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: 'other' } })).status).toBe(400)
  expect((await send('PATCH', '/v1/people/ada', { attribute_values: { a: ['other', 'more'] } })).status).toBe(200)
  expect((await send('GET', '/v1/people/ada')).body.data.attribute_values).toEqual({ a: ['other', 'more'] })
})

it('people and each stack have separate keys', async () => {
  for (const owner of ['people', 'orders']) expect((await declare({ type: 'text', owner })).status).toBe(201)
  await declare({ type: 'number', owner: 'orders', key: 'b' })
  expect((await send('POST', '/v1/people', { attribute_values: { b: 'any' } })).status).toBe(201)
  expect((await send('POST', '/v1/stacks/orders', { attribute_values: { b: 'any' } })).status).toBe(400)
})
