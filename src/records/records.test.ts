import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { send } = useShop(service, 'buyer', 'visitor', {
  key: 'orders',
  owner: 'people',
  type: 'stack',
  target_stack: 'orders',
  cardinality: 'many',
})

describe('a record of an item stack', () => {
  it('is created, read by both identifiers, patched, replaced and deleted', async () => {
    const created = await send('POST', '/v1/stacks/orders', {
      external_id: 'o/1',
      attribute_values: { total: 10, note: 'x' },
    })
    expect(created.status).toBe(201)
    expect(created.body.data).toMatchObject({ external_id: 'o/1', stack_key: 'orders', state: 'active', version: 1 })
    expect(created.body.data.record_id).toMatch(/^[\da-f]{24}$/)
    expect(created.headers.get('location')).toBe('/v1/stacks/orders/o%2F1')
    const internal = `/v1/stacks/orders/internal/${created.body.data.record_id}`
    expect((await send('GET', '/v1/stacks/orders/o%2F1')).body.data).toEqual(created.body.data)
    expect((await send('GET', internal)).body.data).toEqual(created.body.data)

    expect((await send('PATCH', internal, { attribute_values: { total: 11 } })).body.data).toBe(true)
    expect((await send('GET', internal)).body.data.attribute_values).toEqual({ total: 11, note: 'x' })
    expect((await send('PUT', '/v1/stacks/orders/o%2F1', { attribute_values: { total: 12 } })).body.data).toBe(true)
    expect((await send('GET', internal)).body.data.attribute_values).toEqual({ total: 12 })
    expect((await send('DELETE', internal)).body.data).toBe(true)
    expect((await send('GET', internal)).status).toBe(404)
  })

  it('links to people and is linked by them, and either link creates a placeholder', async () => {
    await send('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { buyer: 'ada' } })
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { orders: ['o1', 'o2'] } })
    expect((await send('GET', '/v1/people/ada')).body.data).toMatchObject({
      state: 'active',
      attribute_values: { orders: ['o1', 'o2'] },
    })
    expect((await send('GET', '/v1/stacks/orders/o2')).body.data).toMatchObject({ state: 'placeholder', version: 1 })
  })

  it('differs from a record with the same external identifier in another stack', async () => {
    await send('POST', '/v1/stacks/orders', { external_id: 'same' })
    expect((await send('GET', '/v1/stacks/visits/same')).status).toBe(404)
    expect((await send('POST', '/v1/stacks/visits', { external_id: 'same' })).status).toBe(201)
  })

  it.each([
    ['POST', '/v1/stacks/nothing', 404, 'not_found'],
    ['GET', '/v1/stacks/nothing/o1', 404, 'not_found'],
    ['GET', '/v1/stacks/orders/nobody', 404, 'not_found'],
    ['PATCH', '/v1/stacks/orders/nobody', 404, 'not_found'],
    ['GET', '/v1/stacks/orders/internal/xyz', 400, 'invalid_parameter'],
  ])('%s %s returns %i', async (method, path, status, error) => {
    const reply = await send(method, path, method === 'GET' ? undefined : {})
    expect([reply.status, reply.body.error]).toEqual([status, error])
  })

  it('refuses fields of a person', async () => {
    const reply = await send('POST', '/v1/stacks/orders', { first_name: 'Ada' })
    expect([reply.status, reply.body.details]).toEqual([400, [{ path: '/first_name', message: 'unknown key' }]])
  })
})

describe('a record of an event stack', () => {
  const visit = { external_id: 'v1', attribute_values: { page: '/', visitor: 'ada', at: { hour: 9 } } }

  it('is returned with 200 if it is sent again unchanged, and refused with 409 if its content differs', async () => {
    const first = await send('POST', '/v1/stacks/visits', visit)
    expect(first.status).toBe(201)
    const again = await send('POST', '/v1/stacks/visits', visit)
    expect([again.status, again.body.data]).toEqual([200, first.body.data])
    const otherBodies = [
      { ...visit, attribute_values: { page: '/' } },
      { ...visit, attribute_values: { ...visit.attribute_values, more: 1 } },
      { ...visit, attribute_values: { ...visit.attribute_values, visitor: 'bob' } },
    ]
    for (const body of otherBodies) {
      const reply = await send('POST', '/v1/stacks/visits', body)
      expect([reply.status, reply.body.error]).toEqual([409, 'duplicate_entry'])
      expect(reply.body.message).toBe('This event is already stored with other content.')
      expect(reply.body.details!.map(({ path }) => path)).toEqual(['/external_id'])
    }
    expect((await send('GET', '/v1/stacks/visits/v1')).body.data).toEqual(first.body.data)
    expect((await send('GET', '/v1/people/bob')).status).toBe(404)
  })

  it.each([
    ['PUT', '/v1/stacks/visits/v1'],
    ['PATCH', '/v1/stacks/visits/v1'],
    ['POST', '/v1/stacks/visits/upsert'],
  ])('is immutable: %s %s returns 405 with the allowed methods', async (method, path) => {
    await send('POST', '/v1/stacks/visits', visit)
    const reply = await send(method, path, { external_id: 'v1', attribute_values: { page: '/other' } })
    expect([reply.status, reply.body.error]).toEqual([405, 'invalid_parameter'])
    expect(reply.headers.get('allow')).toBe('GET, HEAD, DELETE')
    expect((await send('GET', '/v1/stacks/visits/v1')).body.data.version).toBe(1)
  })

  it('can be completed once if a link created it as a placeholder', async () => {
    await send('POST', '/v1/schema/attributes', {
      key: 'last_visit',
      owner: 'people',
      type: 'stack',
      target_stack: 'visits',
    })
    await send('POST', '/v1/people', { external_id: 'eve', attribute_values: { last_visit: 'v9' } })
    const placeholder = (await send('GET', '/v1/stacks/visits/v9')).body.data
    const completed = await send('POST', '/v1/stacks/visits', { external_id: 'v9', attribute_values: { page: '/a' } })
    expect([completed.status, completed.body.data.record_id]).toEqual([201, placeholder.record_id])
    expect(
      (await send('POST', '/v1/stacks/visits', { external_id: 'v9', attribute_values: { page: '/b' } })).status,
    ).toBe(409)
    expect((await send('DELETE', '/v1/stacks/visits/v9')).status).toBe(200)
  })
})

describe('an upsert', () => {
  it('creates, then merges like PATCH', async () => {
    const created = await send('POST', '/v1/people/upsert', {
      external_id: 'ada',
      first_name: 'Ada',
      attribute_values: { a: 1 },
    })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/v1/people/ada'])
    const merged = await send('POST', '/v1/people/upsert', { external_id: 'ada', attribute_values: { b: 2 } })
    expect(merged.status).toBe(200)
    expect(merged.body.data).toMatchObject({ first_name: 'Ada', attribute_values: { a: 1, b: 2 }, version: 2 })
    const unchanged = await send('POST', '/v1/people/upsert', { external_id: 'ada' })
    expect([unchanged.status, unchanged.body.data.version]).toEqual([200, 2])
  })

  it('creates one entity if 30 requests are concurrent, and the others are merged into it', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `k${index}`)
    const replies = await Promise.all(
      keys.map(key => send('POST', '/v1/stacks/orders/upsert', { external_id: 'o', attribute_values: { [key]: 1 } })),
    )
    expect(replies.map(reply => reply.status).sort()).toEqual([...Array(29).fill(200), 201])
    expect(Object.keys((await send('GET', '/v1/stacks/orders/o')).body.data.attribute_values)).toHaveLength(30)
  })

  it('needs an external identifier', async () => {
    for (const external_id of [undefined, null, '']) {
      const reply = await send('POST', '/v1/people/upsert', { external_id, first_name: 'Ada' })
      expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/external_id'])
    }
  })
})
