import { beforeAll, describe, expect, it } from 'vitest'
import { insertPeople, personIdSql } from '../../../test/support/many-people.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, useSharedShop } from '../../../test/support/shop.ts'
import { contextOf } from '../../db/context.ts'
import type { Database } from '../../db/db.ts'
import { maxIncluded, readIncluded } from '../../entities/read/included.ts'
import { readIncludedSql } from '../../entities/read/read-sql.ts'
import { currentDefinitions, isRelationship } from '../../organizations/definitions.ts'
import { Shown } from '../../route/shown.ts'

const service = useService()
const organization = useSharedShop(
  service,
  { key: 'retired', owner: 'people', type: 'person' },
  { key: 'vice', owner: 'people', type: 'person' },
  ...(['referrer', 'friends', 'bought', 'buyer', 'city'] as const),
)
const { send } = organization
beforeAll(async () => {
  const person = (external_id: string, attribute_values: object, more = {}) =>
    send('POST', '/v1/people/upsert', { external_id, attribute_values, ...more })
  await person(
    'ada',
    { referrer: 'bob', friends: ['carl', 'unborn', 'bob', 'ada'], bought: ['o2', 'o1'], city: 'Rome' },
    { first_name: 'Ada "the\n' },
  )
  await person(
    'bob',
    { referrer: 'ada', retired: 'ada', city: 'Rome', vice: 'carl' },
    { email: 'bob@example.org', email_consent: true },
  )
  await person('carl', { referrer: 'gone', friends: ['gone', 'bob'] })
  await person('gone', {})
  await send('POST', '/v1/stacks/orders/upsert', { external_id: 'o1', attribute_values: { buyer: 'ada', total: 4.5 } })
  await send('DELETE', '/v1/people/gone')
  await send('PATCH', '/v1/schema/attributes/1', { state: 'archived' })
})

type Item = { external_id: string; included: Record<string, unknown> }
const get = async (path: string) => (await send('GET', path)).body.data
const person = (name: string) => get(`/v1/people/${name}`)
const order = (name: string) => get(`/v1/stacks/orders/${name}`)

async function list(path: string, body: object): Promise<Item[]> {
  const reply = await send('POST', path, { cursor_configuration: { size: 100 }, ...body })
  expect([reply.status, reply.body.details]).toEqual([200, undefined])
  return reply.body.data.items
}
const includedOf = (items: Item[], name: string) => items.find(({ external_id }) => external_id === name)!.included

describe('include', () => {
  it('adds whole reads: one or null, several in the order of the links, and placeholders as such', async () => {
    const items = await list('/v1/people/list', { include: ['friends', 'referrer', 'bought', 'vice'] })
    expect(items).toHaveLength(4)
    expect(includedOf(items, 'ada')).toEqual({
      friends: [await person('carl'), await person('unborn'), await person('bob'), await person('ada')],
      referrer: await person('bob'),
      bought: [await order('o2'), await order('o1')],
      vice: null,
    })
    expect(Object.keys(includedOf(items, 'ada'))).toEqual(['friends', 'referrer', 'bought', 'vice'])
    expect((includedOf(items, 'ada').friends as { state: string }[])[1]!.state).toBe('placeholder')
    expect(includedOf(items, 'bob')).toEqual({
      friends: [],
      referrer: await person('ada'),
      bought: [],
      vice: await person('carl'),
    })
    // A link to a deleted person has no target, as in attribute_values.
    expect(includedOf(items, 'carl')).toMatchObject({ friends: [await person('bob')], referrer: null })
    for (const { included, ...item } of items) expect(item).toEqual(await person(item.external_id))
  })

  it.each<[string, string, object]>([
    ['filter', '/v1/people/filter', { filter: { 'attribute_values.city': 'Rome' } }],
    ['a filter without an index', '/v1/people/filter', { filter: { first_name: { $exists: true } } }],
    ['a sorted list', '/v1/people/list', { sort: { field: 'external_id' } }],
    ['a sorted filter', '/v1/people/filter', { filter: { external_id: 'ada' }, sort: { field: 'email' } }],
    ['related', '/v1/stacks/orders/o1/related', { target: 'people' }],
  ])('works with %s', async (_, path, body) => {
    const items = await list(path, { ...body, include: ['referrer'] })
    expect(includedOf(items, 'ada')).toEqual({ referrer: await person('bob') })
    const named = await list(path, { ...body, include: ['referrer'], fields: ['external_id'], count: true })
    expect(named).toEqual(items.map(({ external_id, included }) => ({ external_id, included })))
  })

  it('works on records and on empty pages', async () => {
    const [item] = await list('/v1/stacks/orders/filter', { filter: { external_id: 'o1' }, include: ['buyer'] })
    expect(item!.included).toEqual({ buyer: await person('ada') })
    expect(await list('/v1/people/filter', { filter: { external_id: 'nobody' }, include: ['referrer'] })).toEqual([])
  })

  it('pages as without it', async () => {
    const whole = await list('/v1/people/list', { include: ['referrer'] })
    const first = await send('POST', '/v1/people/list', { include: ['referrer'], cursor_configuration: { size: 1 } })
    expect(first.body.data).toEqual({ items: whole.slice(0, 1), has_more: true })
    const after_id = first.body.data.items[0].id
    const second = await send('POST', '/v1/people/list', {
      include: ['referrer'],
      cursor_configuration: { size: 5, after_id },
    })
    expect(second.body.data).toEqual({ items: whole.slice(1), has_more: false })
  })

  it('runs one statement for all items and keys, and reads a shared target once', async () => {
    const definitions = await currentDefinitions(contextOf(service.db, organization.id))
    const relationships = definitions.attributes
      .filter(isRelationship)
      .filter(({ owner_stack_id }) => owner_stack_id === 0)
    const rows = await service.sql<{ id: string }>(
      'select id from entities where organization_id = $1 and stack_id = 0',
      [organization.id],
    )
    const queries: string[] = []
    const query: Database['query'] = (statement, values, signal) => {
      queries.push(statement.name)
      return service.db.query(statement, values, signal)
    }
    const sourceIds = rows.map(({ id }) => id)
    const { included } = await readIncluded(
      contextOf({ ...service.db, query, root: service.db }, organization.id),
      { relationships, isById: false, caller: {}, shown: new Shown() },
      sourceIds,
    )
    expect(queries).toEqual(['read_included'])
    expect(included.bytes).toBeGreaterThan(1_000)
  })
})

describe('include is refused', () => {
  it.each<[string, string[], string[]]>([
    ['a plain attribute', ['referrer', 'city'], ['/include/1']],
    ['an undeclared key', ['nothing', 'first_name'], ['/include/0', '/include/1']],
    ['an archived relationship', ['retired'], ['/include/0']],
    ['a relationship of another kind', ['buyer'], ['/include/0']],
    ['a key that occurs twice', ['referrer', 'friends', 'referrer'], ['/include/2']],
    ['a property of objects', ['constructor'], ['/include/0']],
    ['nothing', [], ['/include']],
    ['more than ten', Array.from({ length: 11 }, (_, index) => `k${index}`), ['/include']],
  ])('for %s, with the path', async (_, include, faults) => {
    for (const [path, body] of [
      ['/v1/people/list', {}],
      ['/v1/people/filter', {}],
      ['/v1/people/list', { sort: { field: 'email' } }],
      ['/v1/people/ada/related', { target: 'people' }],
    ] as const) {
      const reply = await send('POST', path, { ...body, include })
      expect([reply.status, reply.body.error]).toEqual([400, 'invalid_parameter'])
      expect(reply.body.details!.map(detail => detail.path)).toEqual(faults)
    }
  })

  it('without the read scope of what it leads to', async () => {
    const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
    expect((await onlyPeople('POST', '/v1/people/list', { include: ['referrer', 'friends'] })).status).toBe(200)
    const onlyRecords = service.sender(await service.tokenFor(organization.key, 'records:read'))
    for (const [reader, path, include] of [
      [onlyPeople, '/v1/people/list', ['referrer', 'bought']],
      [onlyPeople, '/v1/people/filter', ['bought']],
      [onlyRecords, '/v1/stacks/orders/list', ['buyer']],
    ] as const) {
      const refused = await reader('POST', path, { include })
      expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    }
  })

  it('for a relationship that another process archived, and not for one that it declared', async () => {
    const own = await service.organization()
    await own.send('POST', '/v1/people', { external_id: 'ada' })
    await own.send('POST', '/v1/people/list', {})
    const change = (statement: string) =>
      service.sql(
        `with head as (update change_heads set schema_version = schema_version + 1 where organization_id = $1) ${statement}`,
        [own.id],
      )
    await change(`insert into attributes (organization_id, id, owner_stack_id, key, name, type, target_stack_id, cardinality, indexed, state, created_at, updated_at, version)
      values ($1, 99, 0, 'friend', 'friend', 'person', 0, 'one', false, 'active', now(), now(), 2)`)
    expect((await own.send('POST', '/v1/people/list', { include: ['friend'] })).body.data.items[0].included).toEqual({
      friend: null,
    })
    await change(`update attributes set state = 'archived', version = 3 where organization_id = $1 and id = 99`)
    const refused = await own.send('POST', '/v1/people/list', { include: ['friend'] })
    expect([refused.status, refused.body.details!.map(({ path }) => path)]).toEqual([400, ['/include/0']])
  })
})

/** Creates an organization whose people `p1`, `p2` and so on all have the same `links` friends. */
async function makeCircle(people: number, links: number, attributes: string) {
  const own = await createShop(service, 'friends')
  await insertPeople(service.sql, own.id, people + links, { attributes })
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, ${personIdSql('n')}, 1, 0, ${personIdSql('$2::integer + m')}, m - 1
     from generate_series(1, $2::integer) n, generate_series(1, $3::integer) m`,
    [own.id, people, links],
  )
  return own
}
const friendsOf = (size: number) => ({ include: ['friends'], sorting_type: 'asc', cursor_configuration: { size } })

describe('the bounds of include', () => {
  it('are 10,000 entities a page: one more is refused with what to do', async () => {
    const own = await makeCircle(101, 100, `'{}'`)
    const { items } = (await own.send('POST', '/v1/people/list', friendsOf(100))).body.data
    expect(items.map(({ included }: Item) => (included.friends as object[]).length)).toEqual(
      Array(maxIncluded / 100).fill(100),
    )
    const refused = await own.send('POST', '/v1/people/list', friendsOf(101))
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: '/include', message: expect.stringMatching(/10,000 entities.*size/) }],
    ])
  })

  it('are 8 MiB a page, also if a target is included often, and a page below them is sent in parts', async () => {
    // Each item includes twenty targets of 100 KiB, so it includes 2 MB.
    const own = await makeCircle(20, 20, `jsonb_build_object('text', repeat('é', 51200))`)
    const { status, body } = await own.send('POST', '/v1/people/list', friendsOf(4))
    expect([status, body.data.has_more]).toEqual([200, true])
    const [first] = body.data.items
    for (const { included } of body.data.items) expect(included).toEqual(first.included)
    expect(first.included.friends).toHaveLength(20)
    expect(first.included.friends[19]).toEqual((await own.send('GET', '/v1/people/p40')).body.data)
    const refused = await own.send('POST', '/v1/people/list', friendsOf(5))
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: '/include', message: expect.stringContaining('8 MiB') }],
    ])
    // The service has released the memory of these pages.
    for (let count = 0; count < 12; count += 1)
      expect((await own.send('POST', '/v1/people/list', friendsOf(4))).status).toBe(200)
  })

  it('end the reading of targets early', async () => {
    const own = await makeCircle(1, 300, `jsonb_build_object('text', repeat('é', 51200))`)
    const refused = await own.send('POST', '/v1/people/filter', { filter: { external_id: 'p1' }, include: ['friends'] })
    expect([refused.status, refused.body.details!.map(({ path }) => path)]).toEqual([400, ['/include']])
    // All targets together have 30 MB.
    const [relationship] = (await currentDefinitions(contextOf(service.db, own.id))).attributes
    const [source] = await service.sql<{ id: string }>(
      `select id from entities where organization_id = $1 and external_id = 'p1'`,
      [own.id],
    )
    const values = [own.id, [source!.id], [relationship!.id], maxIncluded, 8_388_608, false]
    const [read] = await service.db.query<{ octets: number }>(readIncludedSql, values)
    expect(read!.octets).toBeGreaterThan(8_388_608)
    expect(read!.octets).toBeLessThan(8_388_608 + 32 * 110_000)
  })
})
