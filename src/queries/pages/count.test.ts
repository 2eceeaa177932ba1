import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { personFilters } from '../../../test/support/filter-generators.ts'
import { createDataset } from '../../../test/support/filter-world.ts'
import { insertPeople, personIdSql } from '../../../test/support/many-people.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { createShop, useSharedShop } from '../../../test/support/shop.ts'
import { backfillIndexes } from '../../entities/indexes/index-backfill.ts'
import { maxFewCandidates } from './count.ts'
import { linkedEntities } from './id-page.ts'

const service = useOwnService()
const organization = useSharedShop(service)
const { send } = organization
beforeAll(async () => {
  await createDataset(organization, 13)
  await send('PATCH', '/v1/people/p1', { attribute_values: { friends: ['p2', 'p3', 'p5'], referrer: 'p2' } })
  await send('PATCH', '/v1/people/p2', { attribute_values: { friends: ['p1'] } })
  await backfillIndexes(service.db)
})

const head = async ({ id }: { id: number } = organization) => {
  const [row] = await service.sql<{ sequence: string }>(
    'select sequence from change_heads where organization_id = $1',
    [id],
  )
  return Number(row!.sequence)
}

describe('count', () => {
  it.each<[string, string, object]>([
    ['list', '/v1/people/list', {}],
    ['list of records', '/v1/stacks/orders/list', {}],
    ['list of an empty stack', '/v1/stacks/visits/list', {}],
    ['sorted list', '/v1/people/list', { sort: { field: 'email' } }],
    ['filter', '/v1/people/filter', { filter: { email: { $exists: false } } }],
    ['filter with an index', '/v1/people/filter', { filter: { 'attribute_values.score': { $gte: 1 } } }],
    ['sorted filter', '/v1/people/filter', { filter: { state: 'active' }, sort: { field: 'first_name' } }],
    ['related, in both directions', '/v1/people/p1/related', { target: 'people' }],
    ['related, in one direction', '/v1/people/p1/related', { target: 'people', direction: 'incoming' }],
    ['related, by one relationship', '/v1/people/p1/related', { target: 'people', attribute_key: 'friends' }],
  ])('of %s is the number of all items, whatever the page', async (_, path, body) => {
    const { items } = (await send('POST', path, { ...body, cursor_configuration: { size: 500 } })).body.data
    const after_id = items.at(0)?.id ?? items.at(0)?.record_id
    for (const cursor_configuration of [
      { size: 1 },
      { size: 500 },
      ...('sort' in body ? [] : [{ size: 2, after_id }]),
    ]) {
      const { data } = (await send('POST', path, { ...body, cursor_configuration, count: true })).body
      expect([data.count, data.sequence]).toEqual([items.length, await head()])
    }
    expect((await send('POST', path, { ...body, count: false })).body.data).not.toHaveProperty('count')
  })

  it('of any filter is the number of its items', async () => {
    await fc.assert(
      fc.asyncProperty(personFilters(), async filter => {
        const { items, count } = (
          await send('POST', '/v1/people/filter', { filter, count: true, cursor_configuration: { size: 500 } })
        ).body.data
        expect(count).toBe(items.length)
      }),
      someRuns(100),
    )
  })

  it('and sequence hold at the moment of a small page, while people are created', async () => {
    const own = await service.organization()
    const before = await head(own)
    let isWriting = true
    // Each creation is one change.
    const writers = Array.from({ length: 4 }, async () => {
      for (let written = 0; written < 40; written += 1)
        await own.send('POST', '/v1/people', { attribute_values: { city: 'Rome' } })
    })
    const written = Promise.all(writers).then(() => {
      isWriting = false
    })
    const moments = new Set<number>()
    const filter = { 'attribute_values.city': 'Rome' }
    while (isWriting)
      for (const [path, body] of [
        ['/v1/people/list', {}],
        ['/v1/people/list', { sort: { field: 'created_at' } }],
        ['/v1/people/filter', { filter }],
      ] as const) {
        const { data } = (await own.send('POST', path, { ...body, count: true, cursor_configuration: { size: 500 } }))
          .body
        expect(data.count).toBe(data.sequence - before)
        expect(data.items).toHaveLength(data.count)
        moments.add(data.sequence)
      }
    await written
    expect(moments.size).toBeGreaterThan(2)
  })

  it('reads its own writes', async () => {
    const own = await service.organization()
    for (let count = 0; count < 3; count += 1) {
      expect((await own.send('POST', '/v1/people/list', { count: true })).body.data.count).toBe(count)
      await own.send('POST', '/v1/people', {})
    }
  })

  it('is the same where the links of the whole stack are joined, as with more candidates than are looked up one by one', async () => {
    const own = await createShop(service, 'friends')
    await insertPeople(service.sql, own.id, maxFewCandidates + 5)
    await service.sql(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select $1, ${personIdSql('i')}, 1, 0, ${personIdSql('1 + i % 100')}, 0 from generate_series(1, $2::integer) i`,
      [own.id, maxFewCandidates + 5],
    )
    await service.sql('analyze entities, links')
    const named = { external_id: { $gte: 'p' } }
    const countOf = async (filter: object) => (await own.ok('POST', '/v1/people/filter', { filter, count: true })).count
    const each = maxFewCandidates / 100
    expect(await countOf({ 'attribute_values.friends': { $some: named } })).toBe(maxFewCandidates + 5)
    expect(await countOf({ 'incoming.people.friends': { $some: named } })).toBe(100)
    expect(await countOf({ 'incoming.people.friends': { $count: { $gte: each + 1 }, $where: named } })).toBe(5)
    expect(await countOf({ 'incoming.people.friends': { $count: { $lt: each + 1 } } })).toBe(maxFewCandidates)
  })

  it('of related entities counts each that exists once, of few links and of many', async () => {
    const own = await createShop(service, 'friends', {
      key: 'rivals',
      owner: 'people',
      type: 'person',
      cardinality: 'many',
    })
    const many = 20_005
    await insertPeople(service.sql, own.id, many)
    await service.sql(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select $1, ${personIdSql('i')}, a, 0, ${personIdSql('case when i <= 10 then 1 else 2 end')}, 0
       from generate_series(1, $2::integer) i, (values (1), (2)) v(a)`,
      [own.id, many],
    )
    await service.sql('analyze entities, links')
    const idOf = async (n: number) =>
      (await service.sql(`select ${personIdSql('$1::integer')} as id`, [n]))[0]!.id as string
    const countOf = async (n: number) =>
      (await own.ok('POST', `/v1/people/internal/${await idOf(n)}/related`, { target: 'people', count: true })).count
    expect([await countOf(1), await countOf(2)]).toEqual([10, many - 9])
    for (const n of [5, 15]) await own.ok('DELETE', `/v1/people/internal/${await idOf(n)}`)
    expect([await countOf(1), await countOf(2)]).toEqual([9, many - 10])
  })

  it('and pages are complete where the matches come after more people than are checked one by one', async () => {
    const own = await createShop(service, 'friends')
    await insertPeople(service.sql, own.id, linkedEntities + 10)
    await service.sql(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select $1, ${personIdSql('i')}, 1, 0, ${personIdSql('1 + i % 3')}, 0 from generate_series(1, $2::integer) i`,
      [own.id, maxFewCandidates + 5],
    )
    await service.sql('analyze entities, links')
    const named = { external_id: { $gte: 'p' } }
    const ofTwo = { cursor_configuration: { size: 2 } }
    for (const [filter, total] of [
      [{ 'incoming.people.friends': { $some: named } }, 3],
      [{ 'incoming.people.friends': { $count: { $gte: 2 } } }, 3],
      [{ 'incoming.people.friends': { $count: { $gte: maxFewCandidates } } }, 0],
    ] as const) {
      const first = await own.ok('POST', '/v1/people/filter', { ...ofTwo, filter, count: true })
      expect([first.count, first.items.length, first.has_more]).toEqual([total, Math.min(2, total), total > 2])
      if (total === 0) continue
      const after_id = first.items[1].id
      const rest = { filter, cursor_configuration: { size: 2, after_id } }
      const { items } = await own.ok('POST', '/v1/people/filter', rest)
      expect(new Set([...first.items, ...items].map(({ id }: { id: string }) => id)).size).toBe(3)
    }
  })

  it('needs the read scope of each kind that its filter uses', async () => {
    const onlyPeople = service.sender(await service.tokenFor(organization.key, 'people:read'))
    const filter = { 'attribute_values.bought': { $some: {} } }
    expect((await onlyPeople('POST', '/v1/people/filter', { filter, count: true })).status).toBe(403)
  })

  it('must be a boolean', async () => {
    const { status, body } = await send('POST', '/v1/people/list', { count: 'yes' })
    expect([status, body.details!.map(({ path }) => path)]).toEqual([400, ['/count']])
  })
})
