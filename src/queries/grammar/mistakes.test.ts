import { beforeEach, describe, expect, it } from 'vitest'
import { type Reply, useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { contextOf } from '../../db/context.ts'
import { reloadDefinitions } from '../../organizations/definitions.ts'
import { findUnusedKeys } from './undeclared-keys.ts'

const service = useService()
const organization = useShop(service, { key: 'invoiced_at', owner: 'orders', type: 'datetime' }, 'bought', {
  key: 'score',
  owner: 'people',
  type: 'number',
})
const { send } = organization
beforeEach(async () => {
  await send('POST', '/v1/stacks/orders', {
    external_id: 'o1',
    attribute_values: { invoiced_at: '2025-06-01T12:00:00Z', note: 'gift' },
  })
  await send('POST', '/v1/people', {
    external_id: 'ada',
    attribute_values: { bought: ['o1'], score: 5, colour: 'red' },
  })
})

async function declare(body: object): Promise<number> {
  const reply = await send('POST', '/v1/schema/attributes', body)
  expect(reply.status).toBe(201)
  return reply.body.data.id
}

const filterPeople = (filter: unknown, headers?: Record<string, string>) =>
  send('POST', '/v1/people/filter', { filter }, headers)
const namesOf = ({ body }: Reply) => body.data.items.map((item: { external_id: string }) => item.external_id)
const strict = { Prefer: 'handling=strict' }

describe('a filter whose operand its field can never equal', () => {
  it('is refused if it would match everyone, and the message says what to write', async () => {
    const since = (operand: string) => ({
      'attribute_values.bought': { $none: { 'attribute_values.invoiced_at': { $gte: operand } } },
    })
    const reply = await filterPeople(since('2025-01-01'))
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
    expect(reply.body.details).toEqual([
      {
        path: '/filter/attribute_values.bought/$none/attribute_values.invoiced_at/$gte',
        message: '2025-01-01 is a date; the attribute is a date and time: write 2025-01-01T00:00:00Z',
      },
    ])
    expect(namesOf(await filterPeople(since('2025-01-01T00:00:00Z')))).toEqual([])
    expect(namesOf(await filterPeople(since('2025-07-01T00:00:00Z')))).toEqual(['ada'])
  })

  it('is checked against the current attributes: a declaration refuses it, archiving accepts it again', async () => {
    const byColour = { $not: { 'attribute_values.colour': 7 } }
    expect(namesOf(await filterPeople(byColour))).toEqual(['ada'])
    const id = await declare({ key: 'colour', owner: 'people', type: 'text' })
    expect((await filterPeople(byColour)).body.details![0]!.path).toBe('/filter/$not/attribute_values.colour')
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect(namesOf(await filterPeople(byColour))).toEqual(['ada'])
  })

  it('is refused for an archived consent type, and for a channel without an active type', async () => {
    const { id } = (await send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'sms' }] }))
      .body.data
    const byType = { $not: { consents: { $some: { consent_type_id: id, state: true } } } }
    const bySms = { consents: { $some: { channel: 'sms' } } }
    expect((await filterPeople(byType)).status).toBe(200)
    await send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' })
    expect((await filterPeople(byType)).body.details![0]!.path).toBe('/filter/$not/consents/$some/consent_type_id')
    expect((await filterPeople(bySms)).status).toBe(200)
    await send('PATCH', '/v1/schema/consent-types/1', { channels: [{ channel: 'email', is_default: true }] })
    expect((await filterPeople(bySms)).body.details![0]!.path).toBe('/filter/consents/$some/channel')
  })
})

describe('a filter in a query string', () => {
  const byQuery = (query: string) => send('POST', `/v1/people/filter?${query}`)

  it.each([
    ['filter[attribute_values.score]=5', ['ada']],
    ['filter[attribute_values.score][$lt]=5', []],
    ['filter[attribute_values.score][$in][0]=4&filter[attribute_values.score][$in][1]=5.0', ['ada']],
    ['filter[attribute_values.score][$exists]=true', ['ada']],
    ['filter[attribute_values.colour]=red', ['ada']],
    ['filter[consents][$some][consent_type_id]=1&filter[consents][$some][state]=false', ['ada']],
  ])('%s is converted to the types of its fields', async (query, names) => {
    const reply = await byQuery(query)
    expect(reply.status).toBe(200)
    expect(namesOf(reply)).toEqual(names)
  })

  it('is refused if an operand of a number attribute is not a number', async () => {
    const reply = await byQuery('filter[attribute_values.score][$gte]=many')
    expect(reply.status).toBe(400)
    expect(reply.body.details).toEqual([{ path: '/filter/attribute_values.score/$gte', message: 'must be a number' }])
  })
})

describe('an undeclared key', () => {
  it('causes a warning at every hop if no entity of its stack carries it', async () => {
    const filter = {
      'attribute_values.color': { $neq: 'red' },
      'attribute_values.bought': { $none: { 'attribute_values.colour': 'red', 'attribute_values.note': 'gift' } },
    }
    const reply = await filterPeople(filter)
    expect(reply.status).toBe(200)
    expect(namesOf(reply)).toEqual(['ada'])
    expect(reply.body.data.warnings).toEqual([
      { path: '/filter/attribute_values.color', message: 'is not declared, and no person carries it' },
      {
        path: '/filter/attribute_values.bought/$none/attribute_values.colour',
        message: 'is not declared, and no record of the stack carries it',
      },
    ])
    const refused = await filterPeople(filter, strict)
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
    expect(refused.body.details).toEqual(reply.body.data.warnings)
  })

  it('causes no warning if an entity carries it, even under handling=strict', async () => {
    const filter = { 'attribute_values.colour': { $exists: true }, 'attribute_values.score': 5 }
    for (const headers of [{}, strict]) {
      const reply = await filterPeople(filter, headers)
      expect(namesOf(reply)).toEqual(['ada'])
      expect(reply.body.data).not.toHaveProperty('warnings')
    }
  })

  it('causes a warning until an entity of its own stack and organization carries it', async () => {
    const filter = { 'attribute_values.mood': { $exists: true } }
    const warnings = async () => (await filterPeople(filter)).body.data.warnings?.length ?? 0
    expect(await warnings()).toBe(1)
    await send('POST', '/v1/stacks/orders', { attribute_values: { mood: 'merry' } })
    await (await service.organization()).send('POST', '/v1/people', { attribute_values: { mood: 'merry' } })
    await send('PATCH', '/v1/people/ada', { first_name: 'Ada', attribute_values: { colour: 'blue' } })
    expect(await warnings()).toBe(1)
    await send('PATCH', '/v1/people/ada', { attribute_values: { mood: 'merry' } })
    expect(await warnings()).toBe(0)
    expect((await filterPeople(filter, strict)).status).toBe(200)
  })

  it('causes no warning once an entity written by another process carries it', async () => {
    const definitions = await reloadDefinitions(contextOf(service.db, organization.id))
    const key = { stack_id: 0, key: 'mood', path: '' }
    // A second handle has a cache of its own, like a second process.
    const other = { ...service.db }
    const found = () => findUnusedKeys(other, definitions, [key], { searchMs: undefined })
    expect(await found()).toEqual([key])
    // These are more changes than a search reads.
    const people = Array.from({ length: 500 }, () => ({ op: 'create', body: {} }))
    for (let batch = 0; batch < 21; batch += 1) await send('POST', '/v1/people/batch', { operations: people })
    expect(await found()).toEqual([key])
    await send('POST', '/v1/people', { external_id: 'bob', attribute_values: { mood: 'calm' } })
    expect(await found()).toEqual([])
  })

  it('causes a warning after it was archived only if no value or link remains under it', async () => {
    const archive = async (id: number) => send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    await archive(await declare({ key: 'empty', owner: 'people', type: 'text' }))
    const linked = await declare({ key: 'boss', owner: 'people', type: 'person' })
    await send('PATCH', '/v1/people/ada', { attribute_values: { boss: 'grace' } })
    await archive(linked)
    const reply = await filterPeople({ 'attribute_values.empty': null, 'attribute_values.boss': 'grace' })
    expect(namesOf(reply)).toEqual(['ada'])
    expect(reply.body.data.warnings).toMatchObject([{ path: '/filter/attribute_values.empty' }])
  })

  it('causes no warning if the search takes too long', async () => {
    const definitions = await reloadDefinitions(contextOf(service.db, organization.id))
    const keys = ['mood', 'weather'].map(key => ({ stack_id: 0, key, path: '' }))
    const holder = await service.db.connect()
    try {
      await holder.query('begin; lock table entities in access exclusive mode')
      expect(await findUnusedKeys(service.db, definitions, keys, { searchMs: 30 })).toEqual([])
    } finally {
      await holder.end()
    }
    // The key whose search took too long is searched again only under handling=strict. The key that had no time left is
    // searched again at once.
    expect((await filterPeople({ 'attribute_values.weather': 1 })).body.data.warnings).toHaveLength(1)
    expect((await filterPeople({ 'attribute_values.mood': 1 })).body.data).not.toHaveProperty('warnings')
    expect((await filterPeople({ 'attribute_values.mood': 1 }, strict)).status).toBe(400)
    expect((await filterPeople({ 'attribute_values.mood': 1 })).body.data.warnings).toHaveLength(1)
  })

  it('causes a 403 in a stack that the token may not read, which does not reveal whether the key exists', async () => {
    const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
    const filter = { 'attribute_values.bought': { $some: { 'attribute_values.nothing': 1 } } }
    const reply = await onlyPeople('POST', '/v1/people/filter', { filter }, strict)
    expect(reply).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  })
})
