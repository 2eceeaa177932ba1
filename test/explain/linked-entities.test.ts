import { beforeAll, describe, expect, it } from 'vitest'
import { contextOf } from '../../src/db/context.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { termOf } from '../../src/entities/indexes/index-keys.ts'
import { beginSortIndex } from '../../src/entities/indexes/sort-index.ts'
import { type Definitions, reloadDefinitions } from '../../src/organizations/definitions.ts'
import { groupByHashSql } from '../../src/queries/aggregates/aggregate.ts'
import { parseAggregate } from '../../src/queries/aggregates/parse.ts'
import { aggregateStatements } from '../../src/queries/aggregates/select.ts'
import { maxFewCandidates } from '../../src/queries/pages/count.ts'
import { type PageRequest, readFilteredPage } from '../../src/queries/pages/page.ts'
import { planWithValuesSql } from '../../src/queries/plan/reading.ts'
import { useOwnService } from '../support/service.ts'
import { createShop, type Shop } from '../support/shop.ts'
import { type Knowledge, planOf, rowsFrom } from './explain.ts'
import { type Sent, statementsOf } from './sent.ts'

const service = useOwnService()

/** An organization with orders, and where its rows are. */
type Tenant = { shop: Shop; people: number; orders: number; definitions: Definitions }
/** Each person has about three orders but every tenth, who has none. In the organization beside it, one person has all orders. */
const sizes = { even: { people: 10_000, orders: 30_000 }, skewed: { people: 1_000, orders: 60_000 } }
const tenants = {} as Record<keyof typeof sizes, Tenant>

const idOf = (kind: number, n: string) => `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

async function createTenant(name: keyof typeof sizes): Promise<void> {
  const shop = await createShop(
    service,
    'buyer',
    { key: 'total', owner: 'orders', type: 'number', indexed: true },
    { key: 'country', owner: 'people', type: 'text' },
  )
  // The indexes of empty stacks are ready at once.
  await backfillIndexes(service.db)
  await beginSortIndex(contextOf(service.db, shop.id), 0, 'last_name')
  await backfillIndexes(service.db)
  tenants[name] = { shop, ...sizes[name], definitions: await reloadDefinitions(contextOf(service.db, shop.id)) }
}

type Part = { from: number; to: number }

/** Inserts a part of the people and orders, their links, and the terms of both indexes. The order n is for n in all. */
async function populate(name: keyof typeof sizes, part: { people: Part; orders: Part }): Promise<void> {
  const { shop, people, definitions } = tenants[name]
  const { id } = shop
  const stack = definitions.stacks.find(({ key }) => key === 'orders')!.id
  const attribute = definitions.declared.get(stack)!.get('buyer')!.id
  const [total] = await service.sql<{ index_id: number }>(
    `select index_id from attributes where organization_id = $1 and key = 'total'`,
    [id],
  )
  const { id: lastNames, ready } = definitions.sort_indexes.get(0)!.get('last_name')!
  expect(ready).toBe(true)
  const ofEven = `1 + (n % ${people / 10}) * 10 + 1 + n / ${people / 10} % 9`
  const numbers = ({ from, to }: Part) => `from generate_series(${from}, ${to}) n`
  await service.sql(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, last_name, attributes, created_at, updated_at)
     select ${id}, 0, ${idOf(0, 'n')}, 'p' || n, true, 1, 'Last ' || n % 500, jsonb_build_object('country', 'c' || n % 20), now(), now()
     ${numbers(part.people)}`,
  )
  await service.sql(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
     select ${id}, ${stack}, ${idOf(1, 'n')}, 'o' || n, true, 1, jsonb_build_object('total', n, 'note', 'note ' || n % 7), now(), now()
     ${numbers(part.orders)}`,
  )
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select ${id}, ${idOf(1, 'n')}, ${attribute}, 0, ${idOf(0, name === 'even' ? ofEven : '1')}, 0 ${numbers(part.orders)}`,
  )
  const terms = (type: 'text' | 'number', { from, to }: Part, of: (n: number) => unknown) =>
    Array.from({ length: to - from + 1 }, (_, index) => termOf(type, of(from + index)))
  for (const [index, kind, { from }, values] of [
    [total!.index_id, 1, part.orders, terms('number', part.orders, n => n)],
    [lastNames, 0, part.people, terms('text', part.people, n => `Last ${n % 500}`)],
  ] as const)
    await service.sql(
      `insert into terms (organization_id, index_id, value, entity_id)
       select ${id}, $1, t.term, ${idOf(kind, `${from} - 1 + t.n`)} from unnest($2::text[]) with ordinality as t(term, n)`,
      [index, values],
    )
}

const firstOf = (count: number): Part => ({ from: 1, to: count / 8 })
const restOf = (count: number): Part => ({ from: 1 + count / 8, to: count })

/** kith renews the statistics whenever an organization has eight times as many entities. The oldest are of an eighth of the rows. */
beforeAll(async () => {
  for (const table of ['entities', 'links', 'terms'])
    await service.sql(`alter table ${table} set (autovacuum_enabled = false)`)
  const names = ['skewed', 'even'] as const
  for (const name of names) await createTenant(name)
  for (const partOf of [firstOf, restOf]) {
    for (const name of names) {
      const { people, orders } = sizes[name]
      await populate(name, { people: partOf(people), orders: partOf(orders) })
    }
    if (partOf === firstOf) await service.sql('analyze')
  }
}, 300_000)

const ofOrders = (tests: object) => ({ 'incoming.orders.buyer': tests })
const least = '00000000-0000-0000-0000-000000000000'
const greatest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const without = ofOrders({ $none: {} })
const two = ofOrders({ $count: { $gte: 2 }, $where: { 'attribute_values.note': 'note 3' } })
const inAll = ofOrders({ $sum: { 'attribute_values.total': { $gte: 1_000 } } })
const ofFew = ofOrders({ $some: { 'attribute_values.total': { $lte: 20 } } })
const ofMany = ofOrders({ $some: { 'attribute_values.total': { $gte: 50 } } })
const rare = ofOrders({ $some: { 'attribute_values.note': 'none has it' } })

const size = 50
const filters = { without, two, inAll, rare }
const byName = { field: 'last_name', direction: 'asc' } as const

describe.each<[string, Knowledge]>([
  ['of an eighth of the rows', {}],
  ['of all rows', {}],
  ['of no table', { unknownTables: ['entities', 'links', 'terms'] }],
])('with statistics %s', (age, knowledge) => {
  const hasStatistics = knowledge.unknownTables === undefined
  beforeAll(async () => {
    if (age === 'of all rows') await service.sql('vacuum analyze')
  }, 60_000)

  describe.each(['skewed', 'even'] as const)('in an organization whose orders are %s', name => {
    const sentFor = (request: Partial<PageRequest>, change?: Parameters<typeof statementsOf>[3]) => {
      const { id } = tenants[name].shop
      const page = { stack_id: 0, filter: {}, position: { direction: 'desc', size } as const, ...request }
      return statementsOf(service.db, id, context => readFilteredPage(context, page), change)
    }

    /** Expects that no step reads more rows than the organization has. PostgreSQL rounds the rows of each loop that a filter removes. */
    const expectOnce = async (sent: Sent) => {
      const { people, orders } = tenants[name]
      const plan = await planOf(service.db, sent, knowledge)
      expect(plan.rows, plan.text).toBeLessThanOrEqual(1.2 * (people + orders))
      return plan
    }
    /** Expects that the candidates of an index are looked up, and what links to them. */
    const expectFew = async (sent: Sent) => {
      const plan = await planOf(service.db, sent, knowledge)
      expect(plan.rows, plan.text).toBeLessThanOrEqual(200)
    }

    /** Continues after a walk as if it had not reached the end of the stack. */
    const afterWalk = (rows: object[]) => rows.map(row => ({ ...row, rows: null, found: 0, boundary: greatest }))

    it.each(Object.entries(filters))('a page or a count reads all links once at most: %s', async (_, filter) => {
      const sent = await sentFor({ filter, isCounted: true }, afterWalk)
      const planned = sent.filter(({ settings }) => settings)
      // The count, and the page after the walk.
      expect(planned).toHaveLength(2)
      expect(sent).toHaveLength(3)
      for (const each of sent) await expectOnce(each)
    })

    it('a page looks up the few candidates of an index', async () => {
      const sent = await sentFor({ filter: ofFew })
      expect(sent).toHaveLength(1)
      await expectFew(sent[0]!)
    })

    it('a page does not look up the many candidates of an index', async () => {
      for (const each of await sentFor({ filter: ofMany, isCounted: true }, afterWalk)) await expectOnce(each)
    })

    it.each(Object.entries(filters))(
      'a sorted page checks the people of its round, each by its orders, and then all at once: %s',
      async (_, filter) => {
        const notFound = (rows: object[]) =>
          rows.map(row => ({ ...row, rows: null, found: 0, boundary_term: '', boundary_id: least }))
        const sent = await sentFor({ filter, sort: byName }, notFound)
        expect(sent.map(({ settings }) => settings !== undefined)).toEqual([false, false, true])
        for (const each of sent) await expectOnce(each)
      },
    )

    it('a sorted page looks up the few candidates of an index', async () => {
      for (const each of await sentFor({ filter: ofFew, sort: byName })) await expectFew(each)
    })

    it('a page in the order of a measure reads all links once', async () => {
      const measure = { op: 'sum', field: 'attribute_values.total' } as const
      const sent = await sentFor({ sort: { field: 'incoming.orders.buyer', measure } })
      expect(sent).toHaveLength(1)
      await expectOnce(sent[0]!)
      const [page, count, ...others] = await sentFor({
        sort: { field: 'incoming.orders.buyer', measure },
        isCounted: true,
      })
      expect(others).toEqual([])
      for (const each of [page!, count!]) await expectOnce(each)
    })

    it('a page of orders reads the candidates of an index, or the first orders', async () => {
      const { orders, definitions } = tenants[name]
      const stack_id = definitions.stacks.find(({ key }) => key === 'orders')!.id
      const total = 'attribute_values.total'
      for (const [filter, maxRows] of [
        [{}, 2 * 51],
        [{ 'attribute_values.note': 'note 3' }, 10 * 51],
        [{ [total]: 77 }, 1],
        [{ 'attribute_values.buyer': 'p1' }, 3 * 51],
        [{ [total]: { $gte: 70, $lt: 100 } }, 2 * 30],
        [{ [total]: { $gte: 0 } }, maxFewCandidates + 1],
        [{ [total]: { $gte: 0 }, 'attribute_values.note': 'none has it' }, orders],
      ] as const)
        for (const direction of ['asc', 'desc'] as const)
          for (const each of await sentFor({ stack_id, filter, position: { direction, size } })) {
            const plan = await planOf(service.db, each, knowledge)
            expect(plan.text).not.toMatch(/Seq Scan on (entities|links|terms)/)
            for (const [table, alias] of [
              ['terms', 'x'],
              ['entities', 'e'],
            ] as const)
              expect(rowsFrom(plan, table, alias), plan.text).toBeLessThanOrEqual(maxRows)
          }
    })

    // kith analyzes its tables from the 64th entity of an organization on, and after a restore.
    if (hasStatistics)
      it('groups by a field of the targets read all links once', async () => {
        const { definitions } = tenants[name]
        const stack_id = definitions.stacks.find(({ key }) => key === 'orders')!.id
        const body = { group_by: ['attribute_values.buyer.attribute_values.country'] }
        const { aggregate } = aggregateStatements(parseAggregate(body, definitions, stack_id), definitions, stack_id)
        await expectOnce({ ...aggregate(false), settings: [planWithValuesSql.text, groupByHashSql.text] })
      })
  })
})
