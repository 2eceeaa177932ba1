import { beforeEach, describe, expect, it } from 'vitest'
import { cleanDanglingLinks } from '../../test/support/followers.ts'
import { type Send, useService } from '../../test/support/service.ts'
import { makeShop } from '../../test/support/writes.ts'

const service = useService()
let send: Send
let organization_id: number
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

  it('has only its external identifier, and POST completes it with the same id and links', async () => {
    const before = await person('bob')
    expect(before).toMatchObject({ state: 'placeholder', version: 1, first_name: null, attribute_values: {} })
    const reply = await send('POST', '/v1/people', { external_id: 'bob', first_name: 'Bob' })
    expect([reply.status, reply.body.data.id, reply.body.data.state]).toEqual([201, before.id, 'active'])
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', employer: 'acme' })
    expect((await send('POST', '/v1/people', { external_id: 'bob' })).status).toBe(409)
  })

  it.each([
    ['PATCH', { first_name: 'Bob' }, 'active'],
    ['PUT', { first_name: 'Bob' }, 'active'],
    ['PATCH', {}, 'placeholder'],
    ['PATCH', { external_id: 'bob' }, 'placeholder'],
  ])('is written by %s with %j and is %s afterwards', async (method, body, state) => {
    expect((await send(method, '/v1/people/bob', body)).body.data).toBe(true)
    expect((await person('bob')).state).toBe(state)
  })

  it('blocks its external identifier for renames', async () => {
    const reply = await send('PATCH', '/v1/people/ada', { external_id: 'bob' })
    expect([reply.status, reply.body.error]).toEqual([400, 'duplicate_entry'])
  })

  it('is not created under references=strict, which refuses the path of the missing target', async () => {
    const strict = { Prefer: 'references=strict' }
    const reply = await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob', 'eve'] } }, strict)
    expect([reply.status, reply.body.details?.[0]?.path]).toEqual([400, '/attribute_values/friends/1'])
    expect((await send('GET', '/v1/people/eve')).status).toBe(404)
    expect((await send('PATCH', '/v1/people/ada', { attribute_values: { friends: ['bob'] } }, strict)).status).toBe(200)
  })
})

describe('a link', () => {
  it('follows its target through a rename, and the version of the source does not change', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { friends: ['bob', 'eve'] } })
    await send('PATCH', '/v1/people/bob', { external_id: 'robert' })
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['robert', 'eve'] } })
    await send('PATCH', '/v1/people/robert', { external_id: null })
    expect((await valuesOf('ada')).friends).toEqual([null, 'eve'])
  })

  it('disappears from reads when its target is deleted, and from the table with the cleanup', async () => {
    await send('POST', '/v1/people', {
      external_id: 'ada',
      attribute_values: { friends: ['bob', 'eve'], referrer: 'bob' },
    })
    await send('DELETE', '/v1/people/bob')
    expect(await person('ada')).toMatchObject({ version: 1, attribute_values: { friends: ['eve'] } })
    expect(await links()).toHaveLength(3)
    expect(await cleanDanglingLinks(service.db, { graceMs: 3_600_000 })).toBe(0)
    const removed = await Promise.all([
      cleanDanglingLinks(service.db, { graceMs: -1 }),
      cleanDanglingLinks(service.db, { graceMs: -1 }),
    ])
    expect(removed[0]! + removed[1]!).toBe(2)
    expect(await cleanDanglingLinks(service.db, { graceMs: -1 })).toBe(0)
    expect(await links()).toHaveLength(1)
    await send('POST', '/v1/people', { external_id: 'bob' })
    expect((await valuesOf('ada')).friends).toEqual(['eve'])
  })

  it('can lead to its own source and form a circle', async () => {
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

  it.each([null, '', '  ', []])('is removed when its key is written with %j', async nothing => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    await send('PATCH', '/v1/people/ada', { attribute_values: { referrer: nothing } })
    expect(await valuesOf('ada')).toEqual({})
    expect(await links()).toHaveLength(0)
  })

  it('can be written in a query string', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('PATCH', '/v1/people/ada?attribute_values[referrer]=bob&attribute_values[friends][0]=x', undefined)
    expect(await valuesOf('ada')).toEqual({ referrer: 'bob', friends: ['x'] })
  })
})

describe('a changed declaration', () => {
  const declare = (body: object) => send('POST', '/v1/schema/attributes', { owner: 'people', ...body })

  it('leaves plain values under a new relationship unchanged until they are written', async () => {
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'plain' } })
    await declare({ key: 'mentor', type: 'person' })
    expect(await valuesOf('ada')).toEqual({ mentor: 'plain' })
    expect((await send('GET', '/v1/people/plain')).status).toBe(404)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mentor: 'plain' } })
    expect((await person('plain')).state).toBe('placeholder')
    expect(await links()).toHaveLength(1)
  })

  it('keeps the links of an archived relationship readable and frees its key for a new declaration', async () => {
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

  it('can turn a relationship from one to many but not back', async () => {
    const { id } = (await declare({ key: 'mentor', type: 'person' })).body.data
    await send('POST', '/v1/people', { external_id: 'ada', attribute_values: { mentor: 'bob' } })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'many' })).status).toBe(200)
    expect(await valuesOf('ada')).toEqual({ mentor: ['bob'] })
    expect((await send('PATCH', `/v1/schema/attributes/${id}`, { cardinality: 'one' })).status).toBe(400)
  })
})
