import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Organization, type Reply, type Service, startService } from '../../test/support/service.ts'
import { reloadDefinitions } from '../organizations/definitions.ts'
import { findUncarried } from './undeclared-keys.ts'

let service: Service
let organization: Organization
let send: Organization['send']
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  organization = await service.organization()
  send = organization.send
  await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  await declare({ key: 'invoiced_at', owner: 'orders', type: 'datetime' })
  await declare({ key: 'bought', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' })
  await declare({ key: 'score', owner: 'people', type: 'number' })
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
  test('is refused where it would have matched everybody, and says what to write', async () => {
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

  test('is understood as the attributes stand now: a declaration refuses, archiving allows again', async () => {
    const byColour = { $not: { 'attribute_values.colour': 7 } }
    expect(namesOf(await filterPeople(byColour))).toEqual(['ada'])
    const id = await declare({ key: 'colour', owner: 'people', type: 'text' })
    expect((await filterPeople(byColour)).body.details![0]!.path).toBe('/filter/$not/attribute_values.colour')
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    expect(namesOf(await filterPeople(byColour))).toEqual(['ada'])
  })

  test('is refused for a consent type that is archived, and for a channel that no active type has', async () => {
    const { id } = (await send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'sms' }] }))
      .body.data
    const ofType = { $not: { consents: { $some: { consent_type_id: id, state: true } } } }
    const onSms = { consents: { $some: { channel: 'sms' } } }
    expect((await filterPeople(ofType)).status).toBe(200)
    await send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' })
    expect((await filterPeople(ofType)).body.details![0]!.path).toBe('/filter/$not/consents/$some/consent_type_id')
    expect((await filterPeople(onSms)).status).toBe(200)
    await send('PATCH', '/v1/schema/consent-types/1', { channels: [{ channel: 'email', is_default: true }] })
    expect((await filterPeople(onSms)).body.details![0]!.path).toBe('/filter/consents/$some/channel')
  })
})

describe('in a query string', () => {
  const byQuery = (query: string) => send('POST', `/v1/people/filter?${query}`)

  test.each([
    ['filter[attribute_values.score]=5', ['ada']],
    ['filter[attribute_values.score][$lt]=5', []],
    ['filter[attribute_values.score][$in][0]=4&filter[attribute_values.score][$in][1]=5.0', ['ada']],
    ['filter[attribute_values.score][$exists]=true', ['ada']],
    ['filter[attribute_values.colour]=red', ['ada']],
    ['filter[consents][$some][consent_type_id]=1&filter[consents][$some][state]=false', ['ada']],
  ])('%s is read by the types of its fields', async (query, names) => {
    const reply = await byQuery(query)
    expect(reply.status).toBe(200)
    expect(namesOf(reply)).toEqual(names)
  })

  test('what is no number of a number attribute is refused', async () => {
    const reply = await byQuery('filter[attribute_values.score][$gte]=many')
    expect(reply.status).toBe(400)
    expect(reply.body.details).toEqual([{ path: '/filter/attribute_values.score/$gte', message: 'must be a number' }])
  })
})

describe('a key that is not declared', () => {
  test('and that no entity of its stack carries is answered with a warning, at every hop', async () => {
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

  test('is answered without a warning where an entity carries it, also under handling=strict', async () => {
    const filter = { 'attribute_values.colour': { $exists: true }, 'attribute_values.score': 5 }
    for (const headers of [{}, strict]) {
      const reply = await filterPeople(filter, headers)
      expect(namesOf(reply)).toEqual(['ada'])
      expect(reply.body.data).not.toHaveProperty('warnings')
    }
  })

  test('is warned of until the first write that carries it, and in its own stack and organization alone', async () => {
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

  test('is warned of by a process that has seen another write it as little as by any other', async () => {
    const definitions = await reloadDefinitions(service.db, organization.id)
    const key = { stack_id: 0, key: 'mood', path: '' }
    // Another handle remembers for itself, as another process does.
    const other = { ...service.db }
    const found = () => findUncarried(other, definitions, [key], { searchMs: undefined })
    expect(await found()).toEqual([key])
    // More changes than are looked through one by one.
    const people = Array.from({ length: 500 }, () => ({ op: 'create', body: {} }))
    for (let batch = 0; batch < 21; batch += 1) await send('POST', '/v1/people/batch', { operations: people })
    expect(await found()).toEqual([key])
    await send('POST', '/v1/people', { external_id: 'bob', attribute_values: { mood: 'calm' } })
    expect(await found()).toEqual([])
  })

  test('because it was archived counts as carried while a value or a link still stands under it', async () => {
    const archive = async (id: number) => send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    await archive(await declare({ key: 'empty', owner: 'people', type: 'text' }))
    const linked = await declare({ key: 'boss', owner: 'people', type: 'person' })
    await send('PATCH', '/v1/people/ada', { attribute_values: { boss: 'grace' } })
    await archive(linked)
    const reply = await filterPeople({ 'attribute_values.empty': null, 'attribute_values.boss': 'grace' })
    expect(namesOf(reply)).toEqual(['ada'])
    expect(reply.body.data.warnings).toMatchObject([{ path: '/filter/attribute_values.empty' }])
  })

  test('is answered without a warning, never with a guess, where the search takes too long', async () => {
    const definitions = await reloadDefinitions(service.db, organization.id)
    const keys = ['mood', 'weather'].map(key => ({ stack_id: 0, key, path: '' }))
    const holder = await service.db.connect()
    try {
      await holder.query('begin; lock table entities in access exclusive mode')
      expect(await findUncarried(service.db, definitions, keys, { searchMs: 30 })).toEqual([])
    } finally {
      await holder.end()
    }
    // The key that took too long is not searched again soon, unless somebody insists; the one that had no time left is.
    expect((await filterPeople({ 'attribute_values.weather': 1 })).body.data.warnings).toHaveLength(1)
    expect((await filterPeople({ 'attribute_values.mood': 1 })).body.data).not.toHaveProperty('warnings')
    expect((await filterPeople({ 'attribute_values.mood': 1 }, strict)).status).toBe(400)
    expect((await filterPeople({ 'attribute_values.mood': 1 })).body.data.warnings).toHaveLength(1)
  })

  test('in a stack that the token may not read is refused for its scope, and nothing is told of it', async () => {
    const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
    const filter = { 'attribute_values.bought': { $some: { 'attribute_values.nothing': 1 } } }
    const reply = await onlyPeople('POST', '/v1/people/filter', { filter }, strict)
    expect(reply).toMatchObject({ status: 403, body: { error: 'forbidden' } })
  })
})
