import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { insertPeople } from '../../../test/support/many-people.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { type Reply, useOwnService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { names } from '../../../test/support/writes.ts'
import { backfillIndexes } from '../indexes/index-backfill.ts'

const service = useOwnService()
const organization = useShop(service)
const { send } = organization

const attributesPath = '/v1/schema/attributes'
const unique = { key: 'code', owner: 'people', type: 'text', indexed: true, unique: true }

async function declare(body: object = {}): Promise<number> {
  const reply = await send('POST', attributesPath, { ...unique, ...body })
  expect(reply.status, JSON.stringify(reply.body)).toBe(201)
  return reply.body.data.id
}

const person = (external_id: string, code: unknown, rest: object = {}) => ({
  external_id,
  attribute_values: { code, ...rest },
})
const create = (external_id: string, code: unknown) => send('POST', '/v1/people', person(external_id, code))
const patch = (external_id: string, code: unknown) =>
  send('PATCH', `/v1/people/${external_id}`, { attribute_values: { code } })
const idOf = async (external_id: string) => (await send('GET', `/v1/people/${external_id}`)).body.data.id

/** The codes of all people, by external identifier. */
async function codes(): Promise<Record<string, unknown>> {
  const rows = await service.sql<{ external_id: string; code: unknown }>(
    `select external_id, attributes->'code' as code from entities
     where organization_id = $1 and stack_id = 0 and attributes ? 'code' order by external_id`,
    [organization.id],
  )
  return Object.fromEntries(rows.map(({ external_id, code }) => [external_id, code]))
}

const taken = (reply: Reply) => [reply.status, reply.body.error, reply.body.details?.map(({ path }) => path)]
const conflict = [409, 'duplicate_entry', ['/attribute_values/code']]

describe('a unique value', () => {
  it('is refused to a second entity by every kind of write, and names the first one', async () => {
    await declare()
    expect((await create('ada', 'x')).status).toBe(201)
    await create('bob', 'y')
    const refused = await create('eve', 'x')
    expect(taken(refused)).toEqual(conflict)
    expect(refused.body.details?.[0]?.message).toBe('is already the value of the person with the external_id ada')
    expect(taken(await send('PATCH', '/v1/people/bob', { attribute_values: { code: 'x' } }))).toEqual([
      400,
      'duplicate_entry',
      ['/attribute_values/code'],
    ])
    const byId = `/v1/people/internal/${await idOf('bob')}`
    expect(taken(await send('PATCH', byId, { attribute_values: { code: 'x' } }))).toEqual(conflict)
    expect(taken(await send('PUT', byId, { attribute_values: { code: 'x' } }))).toEqual(conflict)
    expect(taken(await send('POST', '/v1/people/upsert', person('eve', 'x')))).toEqual(conflict)
    expect(taken(await send('POST', '/v1/people/upsert', person('bob', 'x')))).toEqual(conflict)
    expect(await codes()).toEqual({ ada: 'x', bob: 'y' })
  })

  it('names the other entity only to a token that may read it', async () => {
    await declare()
    await create('ada', 'x')
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write'))
    const refused = await writer('POST', '/v1/people', person('eve', 'x'))
    expect(refused.body.details).toEqual([
      { path: '/attribute_values/code', message: 'is already the value of another person' },
    ])
    const operations = [{ op: 'create', body: person('eve', 'x') }]
    const batch = await writer('POST', '/v1/people/batch', { operations })
    expect(JSON.stringify(batch.body)).not.toContain('ada')
    const imported = await importLines({ send: writer }, '/v1/people/import', linesFrom([person('eve', 'x')]))
    expect(JSON.stringify(imported)).not.toContain('ada')
  })

  it('may be written again to its own entity, and is free after it was changed, cleared or deleted', async () => {
    await declare()
    await create('ada', 'x')
    expect((await patch('ada', 'x')).status).toBe(200)
    await patch('ada', 'y')
    expect((await create('bob', 'x')).status).toBe(201)
    await patch('bob', null)
    expect((await create('eve', 'x')).status).toBe(201)
    await send('DELETE', '/v1/people/eve')
    expect((await patch('bob', 'x')).status).toBe(200)
    await send('PUT', '/v1/people/bob', { first_name: 'Bob' })
    expect((await patch('ada', 'x')).status).toBe(200)
  })

  it('is equal as a filter compares: case and the written form count, in numbers the size', async () => {
    await declare()
    const number = await declare({ key: 'number', type: 'number' })
    expect(number).toBeGreaterThan(0)
    await declare({ key: 'at', type: 'datetime' })
    const values = (external_id: string, attribute_values: object) =>
      send('POST', '/v1/people', { external_id, attribute_values })
    await values('a', { code: 'x', number: 1, at: '2026-01-01T00:00:00Z' })
    expect((await values('b', { code: 'X', number: 1.5, at: '2026-01-01T01:00:00+01:00' })).status).toBe(201)
    const raw = '{"external_id":"c","attribute_values":{"number":1.0}}'
    expect((await send('POST', '/v1/people', raw)).status).toBe(409)
    expect((await values('c', { number: 10e-1 })).status).toBe(409)
  })

  it('may begin like another one for any number of characters', async () => {
    await declare()
    const start = 'x'.repeat(200)
    for (const end of ['a', 'b', 'c']) expect((await create(end, start + end)).status).toBe(201)
    expect(taken(await create('d', `${start}b`))).toEqual(conflict)
  })

  it('is unique within its attribute, its owner and its organization', async () => {
    await declare()
    await declare({ key: 'other' })
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    await declare({ owner: 'orders' })
    expect((await create('ada', 'x')).status).toBe(201)
    expect((await send('POST', '/v1/people', { attribute_values: { other: 'x' } })).status).toBe(201)
    expect((await send('POST', '/v1/stacks/orders', { attribute_values: { code: 'x' } })).status).toBe(201)
    const refused = await send('POST', '/v1/stacks/orders', { attribute_values: { code: 'x' } })
    expect(taken(refused)).toEqual(conflict)
    expect(refused.body.details?.[0]?.message).toMatch(
      /^is already the value of the record with the record_id [\da-f]{24}$/,
    )
    const other = await service.organization()
    await other.send('POST', attributesPath, unique)
    expect((await other.send('POST', '/v1/people', person('ada', 'x'))).status).toBe(201)
  })
})

describe('a set of writes', () => {
  beforeEach(() => declare())

  it('gives a value to the first of its writes, and to a later one after an earlier one has released it', async () => {
    await create('ada', 'x')
    const operations = [
      { op: 'create', body: person('b1', 'y') },
      { op: 'create', body: person('b2', 'y') },
      { op: 'patch', external_id: 'b1', body: { attribute_values: { code: 'z' } } },
      { op: 'create', body: person('b3', 'y') },
      { op: 'patch', external_id: 'ada', body: { attribute_values: { code: null } } },
      { op: 'create', body: person('b4', 'x') },
      { op: 'create', body: person('b5', 'x') },
      { op: 'delete', external_id: 'b4' },
      { op: 'upsert', body: person('b6', 'x') },
    ]
    const { items } = (await send('POST', '/v1/people/batch', { operations })).body.data
    expect(items.map(({ status }: { status: number }) => status)).toEqual([201, 409, 200, 201, 200, 201, 409, 200, 201])
    expect(items[1].details).toEqual([
      {
        path: '/operations/1/body/attribute_values/code',
        message: 'is already the value of the person with the external_id b1',
      },
    ])
    expect(await codes()).toEqual({ b1: 'z', b3: 'y', b6: 'x' })
  })

  it('that is atomic is refused as a whole by the first write whose value is taken', async () => {
    const operations = [
      { op: 'create', body: person('a', 'x') },
      { op: 'create', body: person('b', 'x') },
    ]
    const refused = await send('POST', '/v1/people/batch', { operations, atomic: true })
    expect(taken(refused)).toEqual([409, 'duplicate_entry', ['/operations/1/body/attribute_values/code']])
    expect(await codes()).toEqual({})
    const swap = [
      { op: 'create', body: person('a', 'x') },
      { op: 'patch', external_id: 'a', body: { attribute_values: { code: 'y' } } },
      { op: 'create', body: person('b', 'x') },
    ]
    expect((await send('POST', '/v1/people/batch', { operations: swap, atomic: true })).status).toBe(200)
    expect(await codes()).toEqual({ a: 'y', b: 'x' })
  })

  it('of an import decides in the order of the lines, however many sets run at once', async () => {
    const lines = Array.from({ length: 2_000 }, (_, n) => person(`p${n}`, `v${n % 1_500}`))
    lines.push(person('p0', 'released'), person('last', 'v0'))
    const { counts, refused } = await importLines(organization, '/v1/people/import', linesFrom(lines))
    expect(counts).toMatchObject({ received: 2_002, created: 1_501, updated: 1, failed: 500 })
    expect(refused.map(({ line }) => line)).toEqual(Array.from({ length: 500 }, (_, n) => 1_501 + n))
    expect(new Set(refused.map(({ error }) => error))).toEqual(new Set(['duplicate_entry']))
    expect(await codes()).toMatchObject({ p0: 'released', last: 'v0', p1499: 'v1499' })
  }, 60_000)

  it('that recognizes people by email gives each value once', async () => {
    const match = ['email']
    const operations = ['a', 'b', 'a'].map((name, index) => ({
      op: 'upsert',
      body: { email: `${name}@example.org`, attribute_values: { code: index === 1 ? 'x' : 'x' } },
    }))
    const { items } = (await send('POST', '/v1/people/batch', { match, operations })).body.data
    expect(items.map(({ status }: { status: number }) => status)).toEqual([201, 409, 200])
  })
})

describe('concurrent writers', () => {
  it('of one new value are 200, and one of them wins', async () => {
    await declare()
    const replies = await Promise.all(names('p', 200).map(name => create(name, 'x')))
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(199)
    expect(Object.values(await codes())).toEqual(['x'])
  }, 60_000)

  it('of one value through patches, upserts, batches, imports and retries with a key leave one holder', async () => {
    await declare()
    await Promise.all(names('old', 20).map(name => send('POST', '/v1/people', { external_id: name })))
    const operations = (prefix: string) => names(prefix, 20).map(name => ({ op: 'upsert', body: person(name, 'x') }))
    const lines = (prefix: string) => linesFrom(names(prefix, 50).map(name => person(name, 'x')))
    await Promise.all([
      ...names('old', 20).map(name => patch(name, 'x')),
      ...names('up', 20).map(name => send('POST', '/v1/people/upsert', person(name, 'x'))),
      ...names('key', 10).map(name =>
        send('POST', '/v1/people', person(name, 'x'), { 'Idempotency-Key': `${organization.key}${name}` }),
      ),
      ...names('batch', 5).map(name => send('POST', '/v1/people/batch', { operations: operations(name) })),
      ...names('atomic', 5).map(name =>
        send('POST', '/v1/people/batch', { operations: operations(name).slice(0, 1), atomic: true }),
      ),
      ...names('line', 2).map(name => importLines(organization, '/v1/people/import', lines(name))),
    ])
    expect(Object.values(await codes())).toEqual(['x'])
  }, 60_000)

  it('of random values never leave two entities with one value', async () => {
    await declare()
    const value = fc.constantFrom('a', 'b', 'c', null)
    const name = fc.constantFrom('p0', 'p1', 'p2', 'p3', 'p4')
    const write = fc.record({ kind: fc.constantFrom('upsert', 'patch', 'put', 'delete', 'batch'), name, value })
    const run = ({ kind, name, value }: { kind: string; name: string; value: string | null }) => {
      if (kind === 'patch') return patch(name, value)
      if (kind === 'put') return send('PUT', `/v1/people/${name}`, { attribute_values: { code: value } })
      if (kind === 'delete') return send('DELETE', `/v1/people/${name}`)
      if (kind === 'upsert') return send('POST', '/v1/people/upsert', person(name, value))
      const operations = [
        { op: 'patch', external_id: name, body: { attribute_values: { code: null } } },
        { op: 'upsert', body: person('p5', value) },
      ]
      return send('POST', '/v1/people/batch', { operations })
    }
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 10, maxLength: 40 }), async writes => {
        const replies = await Promise.all(writes.map(run))
        expect(replies.every(({ status }) => status < 500 || status === 500)).toBe(true)
        const values = Object.values(await codes())
        expect(new Set(values).size).toBe(values.length)
      }),
      someRuns(15),
    )
  }, 120_000)

  it('find the winner although they were decided with definitions in which the attribute was not unique', async () => {
    const id = (await send('POST', attributesPath, { ...unique, unique: false })).body.data.id
    await backfillIndexes(service.db)
    const [declared, ...replies] = await Promise.all([
      send('PATCH', `${attributesPath}/${id}`, { unique: true }),
      ...names('p', 40).map(name => create(name, 'x')),
    ])
    const created = replies.filter(({ status }) => status === 201)
    if (declared!.status === 200) expect(created).toHaveLength(1)
    else expect(taken(declared!)).toEqual([409, 'duplicate_entry', ['/unique']])
  }, 60_000)
})

describe('an entity that comes back', () => {
  beforeEach(() => declare())

  it('is refused while another one has its value', async () => {
    await create('ada', 'x')
    const id = await idOf('ada')
    await send('DELETE', '/v1/people/ada')
    await create('bob', 'x')
    const refused = await send('POST', `/v1/people/internal/${id}/restore`)
    expect(taken(refused)).toEqual(conflict)
    await patch('bob', null)
    expect((await send('POST', `/v1/people/internal/${id}/restore`)).status).toBe(200)
    expect(taken(await patch('bob', 'x'))).toEqual([400, 'duplicate_entry', ['/attribute_values/code']])
  })

  it('by an unmerge is refused too, and nothing of the merge is undone', async () => {
    await create('ada', 'x')
    await create('eve', 'y')
    expect((await send('POST', '/v1/people/ada/merge', { from: 'eve' })).status).toBe(200)
    expect((await create('bob', 'y')).status).toBe(201)
    const refused = await send('POST', '/v1/people/ada/unmerge', { from: 'eve' })
    expect(taken(refused)).toEqual([409, 'duplicate_entry', ['/from']])
    expect((await send('GET', '/v1/people/eve')).body.data.external_id).toBe('ada')
    await patch('bob', 'z')
    expect((await send('POST', '/v1/people/ada/unmerge', { from: 'eve' })).status).toBe(200)
    expect(await codes()).toEqual({ ada: 'x', bob: 'z', eve: 'y' })
  })

  it('by a merge gives its value to the survivor, who keeps it', async () => {
    await create('ada', null)
    await create('eve', 'y')
    expect((await send('POST', '/v1/people/ada/merge', { from: 'eve' })).status).toBe(200)
    expect(await codes()).toEqual({ ada: 'y' })
    expect(taken(await create('bob', 'y'))).toEqual(conflict)
    expect((await send('POST', '/v1/people/ada/unmerge', { from: 'eve' })).status).toBe(200)
    expect(await codes()).toEqual({ eve: 'y' })
  })
})

describe('an attribute', () => {
  it('is unique at once if no entity carries its key', async () => {
    await send('POST', '/v1/people', { external_id: 'ada' })
    const id = await declare()
    expect((await send('GET', `${attributesPath}/${id}`)).body.data.index_state.state).toBe('ready')
  })

  it('is unique at once in a stack of many entities, and if its index is not filled yet', async () => {
    await insertPeople(service.sql, organization.id, 12_000)
    await declare({ key: 'other' })
    const id = (await send('POST', attributesPath, { ...unique, unique: false })).body.data.id
    const patched = await send('PATCH', `${attributesPath}/${id}`, { unique: true })
    expect(patched.body.data).toMatchObject({ unique: true, index_state: { state: 'ready' } })
    await create('ada', 'x')
    expect(taken(await create('bob', 'x'))).toEqual(conflict)
    await backfillIndexes(service.db)
    expect(taken(await create('bob', 'x'))).toEqual(conflict)
  })

  it('becomes unique only after its index is ready', async () => {
    await create('ada', 'x')
    const refused = await send('POST', attributesPath, unique)
    expect([refused.status, refused.body.error, refused.body.details?.[0]?.path]).toEqual([
      409,
      'invalid_parameter',
      '/unique',
    ])
    const id = (await send('POST', attributesPath, { ...unique, unique: false })).body.data.id
    const filling = await send('PATCH', `${attributesPath}/${id}`, { unique: true })
    expect([filling.status, filling.body.error]).toEqual([409, 'invalid_parameter'])
    await backfillIndexes(service.db)
    expect((await send('PATCH', `${attributesPath}/${id}`, { unique: true })).body.data.unique).toBe(true)
    expect(taken(await create('bob', 'x'))).toEqual(conflict)
  })

  it('does not become unique while entities share a value: the refusal lists the values and changes nothing', async () => {
    const long = 'y'.repeat(300)
    for (const [name, code] of Object.entries({ a: 'x', b: 'x', c: 'x', d: long, e: long, f: `${long}z`, g: 'w' }))
      await create(name, code)
    const id = (await send('POST', attributesPath, { ...unique, unique: false })).body.data.id
    await backfillIndexes(service.db)
    const before = (await send('GET', `${attributesPath}/${id}`)).body.data
    const refused = await send('PATCH', `${attributesPath}/${id}`, { unique: true, name: 'Code' })
    expect([refused.status, refused.body.error]).toEqual([409, 'duplicate_entry'])
    expect(refused.body.details).toEqual([
      { path: '/unique', message: '"x" is that of 3 entities' },
      { path: '/unique', message: expect.stringMatching(/^"y{99}… is that of 2 entities$/) },
    ])
    expect((await send('GET', `${attributesPath}/${id}`)).body.data).toEqual(before)
    const admin = service.sender(await service.tokenFor(organization.key, 'schema:write'))
    const unseen = await admin('PATCH', `${attributesPath}/${id}`, { unique: true })
    expect(unseen.body.details?.map(({ message }) => message)).toEqual([
      'a value is that of 3 entities',
      'a value is that of 2 entities',
    ])
    for (const name of ['b', 'c', 'e']) await patch(name, null)
    expect((await send('PATCH', `${attributesPath}/${id}`, { unique: true })).status).toBe(200)
  })

  it('that is archived does not hold its values, and becomes active again only without duplicates', async () => {
    const id = await declare()
    await create('ada', 'x')
    await send('PATCH', `${attributesPath}/${id}`, { state: 'archived' })
    expect((await create('bob', 'x')).status).toBe(201)
    const refused = await send('PATCH', `${attributesPath}/${id}`, { state: 'active' })
    expect([refused.status, refused.body.error]).toEqual([409, 'invalid_parameter'])
    expect(refused.body.details).toEqual([
      { path: '/state', message: expect.stringContaining('send {"state": "active", "unique": false}') },
    ])
    expect((await send('GET', `${attributesPath}/${id}`)).body.data.state).toBe('archived')
    expect((await send('PATCH', `${attributesPath}/${id}`, { state: 'active', unique: false })).status).toBe(200)
    await backfillIndexes(service.db)
    const repeated = await send('PATCH', `${attributesPath}/${id}`, { unique: true })
    expect(taken(repeated)).toEqual([409, 'duplicate_entry', ['/unique']])
    await patch('bob', null)
    expect((await send('PATCH', `${attributesPath}/${id}`, { unique: true })).body.data.unique).toBe(true)
  })
})
