import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Send, type Service, startService } from '../../test/support/service.ts'
import { makeShop } from '../../test/support/writes.ts'
import { cleanDanglingLinks } from '../entities/dangling-link-cleanup.ts'

let service: Service
let send: Send
let organization_id: number
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  const shop = await makeShop(service)
  send = shop.send
  organization_id = shop.id
})

const person = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data
const valuesOf = async (external_id: string) => (await person(external_id)).attribute_values
const links = () => service.sql('select 1 from links where organization_id = $1', [organization_id])

describe('a placeholder', () => {
  beforeEach(() =>
    send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob', employer: 'acme' } }),
  )

  test('holds its name only, and is completed by POST: 201, same identifier, links intact', async () => {
    const before = await person('bob')
    expect(before).toMatchObject({ state: 'placeholder', version: 1, first_name: null, attribute_values: {} })
    const reply = await send('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    expect([reply.status, reply.body.data.id, reply.body.data.state]).toEqual([201, before.id, 'active'])
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', employer: 'acme' })
    expect((await send('POST', '/v1/people', { external_id: 'bob' })).status).toBe(409)
  })

  test.each([
    ['PATCH', { first_name: 'Bob' }, 'active'],
    ['PUT', { first_name: 'Bob' }, 'active'],
    ['PATCH', {}, 'placeholder'],
    ['PATCH', { external_id: 'bob' }, 'placeholder'],
  ])('%s with %j leaves it %s', async (method, body, state) => {
    expect((await send(method, '/v1/people/bob', body)).body.data).toBe(true)
    expect((await person('bob')).state).toBe(state)
  })

  test('cannot be renamed onto', async () => {
    const reply = await send('PATCH', '/v1/people/ada', { external_id: 'bob' })
    expect([reply.status, reply.body.error]).toEqual([400, 'duplicate_entry'])
  })

  test('is refused by references=strict, with the place that names nobody', async () => {
    const strict = { Prefer: 'references=strict' }
    const reply = await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob', 'eve'] } }, strict)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/friends/1'])
    expect((await send('GET', '/v1/people/eve')).status).toBe(404)
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob'] } }, strict)).status).toBe(200)
  })
})

describe('a link', () => {
  test('follows its target through a rename, and the source stays at its version', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { friends: ['bob', 'eve'] } })
    await send('PATCH', '/v1/people/bob', { external_id: 'robert' })
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['robert', 'eve'] } })
    await send('PATCH', '/v1/people/robert', { external_id: null })
    expect((await valuesOf('ada')).friends).toEqual([null, 'eve'])
  })

  test('goes with its target: from reads at once, from the table with the sweep', async () => {
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve'], referrer: 'bob' },
    })
    await send('DELETE', '/v1/people/bob')
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['eve'] } })
    expect(await links()).toHaveLength(3)
    expect(await cleanDanglingLinks(service.db, { graceMs: 3_600_000 })).toBe(0)
    const swept = await Promise.all([
      cleanDanglingLinks(service.db, { graceMs: -1 }),
      cleanDanglingLinks(service.db, { graceMs: -1 }),
    ])
    expect(swept[0]! + swept[1]!).toBe(2)
    expect(await cleanDanglingLinks(service.db, { graceMs: -1 })).toBe(0)
    expect(await links()).toHaveLength(1)
    await send('POST', '/v1/people', { external_id: 'bob' })
    expect((await valuesOf('ada')).friends).toEqual(['eve'])
  })

  test('may lead to oneself and in a circle', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'ada', friends: ['bob'] } })
    await send('POST', '/v1/people', {
      external_id: 'bob',
      attribute_values: { referrer: 'ada', friends: ['bob', 'ada'] },
    })
    expect(await valuesOf('ada')).toEqual({ referrer: 'ada', friends: ['bob'] })
    expect(await valuesOf('bob')).toEqual({ referrer: 'ada', friends: ['bob', 'ada'] })
    expect((await send('DELETE', '/v1/people/ada')).status).toBe(200)
    expect(await valuesOf('bob')).toEqual({ friends: ['bob'] })
  })

  test.each([null, '', '  ', []])('goes when its key is written with %j', async nothing => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    await send('PATCH', '/v1/people/ada', { attribute_values: { referrer: nothing } })
    expect(await valuesOf('ada')).toEqual({})
    expect(await links()).toHaveLength(0)
  })

  test('is made from a query string as from a body', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('PATCH', '/v1/people/ada?attribute_values[referrer]=bob&attribute_values[friends][0]=x', undefined)
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', friends: ['x'] })
  })
})

describe('declaring and archiving concern later writes', () => {
  const declare = (body: object) => send('POST', '/v1/schema/attributes', { owner: 'people', ...body })

  test('a key declared a relationship over plain values leaves them until they are written', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'plain' } })
    await declare({ key: 'mentor', type: 'person' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'plain' })
    expect((await send('GET', '/v1/people/plain')).status).toBe(404)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 'plain' } })
    expect((await person('plain')).state).toBe('placeholder')
    expect(await links()).toHaveLength(1)
  })

  test('an archived relationship reads on, is as undeclared, and may be declared anew', async () => {
    const { id } = (await declare({ key: 'mentor', type: 'person' })).body.data
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'bob' } })
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'bob' })
    await declare({ key: 'mentor', type: 'number' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'bob' })
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 'bob' } })).status).toBe(400)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 7 } })
    expect(await valuesOf('ada')).toEqual({ mentor: 7 })
    expect(await links()).toHaveLength(0)
    const back = await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'active' })
    expect([back.status, back.body.error]).toEqual([409, 'duplicate_entry'])
  })

  test('one may become many', async () => {
    const { id } = (await declare({ key: 'mentor', type: 'person' })).body.data
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'bob' } })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'many' })).status).toBe(200)
    expect(await valuesOf('ada')).toEqual({ mentor: ['bob'] })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'one' })).status).toBe(400)
  })
})
