import { beforeAll, describe, expect, it } from 'vitest'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { termOf } from '../../src/entities/indexes/index-keys.ts'
import { prepareSortIndex, readySortIndex } from '../../src/entities/indexes/sort-index.ts'
import { startOf } from '../../src/entities/read/pagination.ts'
import { groupByHashSql } from '../../src/filters/aggregate.ts'
import { parseAggregate } from '../../src/filters/aggregate-parse.ts'
import { aggregateStatements } from '../../src/filters/aggregate-select.ts'
import { readMeasuredPage } from '../../src/filters/measured-page.ts'
import { Reading } from '../../src/filters/page.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { countStatement, matchingStatements, type Query, sortedStatements } from '../../src/filters/select.ts'
import { parseSort } from '../../src/filters/sort.ts'
import { type Definitions, reloadDefinitions } from '../../src/organizations/definitions.ts'
import { useOwnService } from '../support/service.ts'
import { createShop, type Shop } from '../support/shop.ts'
import { type Knowledge, rowsRead } from './explain.ts'

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
  const definitions = await reloadDefinitions(service.db, shop.id)
  const lastNames = { stack_id: 0, field: 'last_name', type: 'text' } as const
  await prepareSortIndex(service.db, definitions, lastNames).catch(() => backfillIndexes(service.db))
  tenants[name] = { shop, ...sizes[name], definitions: await reloadDefinitions(service.db, shop.id) }
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
  const lastNames = readySortIndex(definitions, 0, 'last_name')!.id
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
const without = ofOrders({ $none: {} })
const two = ofOrders({ $count: { $gte: 2 }, $where: { 'attribute_values.note': 'note 3' } })
const inAll = ofOrders({ $sum: { 'attribute_values.total': { $gte: 1_000 } } })
const ofFew = ofOrders({ $some: { 'attribute_values.total': { $lte: 20 } } })
const ofMany = ofOrders({ $some: { 'attribute_values.total': { $gte: 50 } } })
const rare = ofOrders({ $some: { 'attribute_values.note': 'none has it' } })

const position = { direction: 'desc', size: 50 } as const
const [start, limit] = [startOf(position), 51]

const filters = { without, two, inAll, rare }

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
    const parse = (filter: object) => parseFilter(filter, tenants[name].definitions, 0).condition
    const matching = (filter: object) => matchingStatements(parse(filter), tenants[name].definitions, 0, position)
    const counting = (filter: object) => countStatement(parse(filter), tenants[name].definitions, 0)
    const sorted = (filter: object) => {
      const { definitions } = tenants[name]
      const sort = parseSort({ field: 'last_name', direction: 'asc' }, definitions, 0)
      const index = readySortIndex(definitions, 0, 'last_name')!
      return sortedStatements({ condition: parse(filter), definitions, stack_id: 0, sort, index, position })
    }

    /** Expects that no step reads more rows than the organization has. PostgreSQL rounds the rows of each loop that a filter removes. */
    const expectOnce = async (query: Query) => {
      const { people, orders } = tenants[name]
      expect(await rowsRead(service.db, query, knowledge)).toBeLessThanOrEqual(1.2 * (people + orders))
    }
    /** Expects that the candidates of an index are looked up, and what links to them. Without statistics, PostgreSQL reads the people once. */
    const expectFew = async (query: Query) =>
      hasStatistics ? expect(await rowsRead(service.db, query)).toBeLessThanOrEqual(200) : expectOnce(query)

    it.each(Object.entries(filters))('a page or a count reads all links once at most: %s', async (_, filter) => {
      const { rows, boundary } = matching(filter)
      for (const round of [0, 1]) await expectOnce(rows(start, limit, round))
      await expectOnce(boundary(start, 0)!)
      await expectOnce(counting(filter))
    })

    it('a page looks up the few candidates of an index, and not many', async () => {
      const { rows, unlessFew } = matching(ofFew)
      await expectFew(unlessFew!.countCandidates)
      await expectFew(rows(start, limit, 0))
      const { others, countCandidates } = matching(ofMany).unlessFew!
      await expectOnce(countCandidates)
      for (const round of [0, 1]) await expectOnce(others.rows(start, limit, round))
      await expectOnce(counting(ofMany))
    })

    it('a sorted page checks the people of its round, each by its orders, and then all at once', async () => {
      for (const filter of Object.values(filters))
        for (const round of [0, 1]) await expectOnce(sorted(filter).walk(undefined, limit, round))
      for (const filter of Object.values(filters)) await expectOnce(sorted(filter).all!(undefined, limit))
      await expectFew(sorted(ofFew).candidates[0]!)
    })

    it('a page in the order of a measure reads all links once', async () => {
      const { definitions } = tenants[name]
      const queries: Query[] = []
      const run: Reading['run'] = async query => {
        if (query) queries.push(query)
        return []
      }
      const reading = Object.assign(Object.create(Reading.prototype), { definitions, run })
      reading.parseFilter = async () => ({ parsed: parseFilter({}, definitions, 0), notes: { unusedKeys: [] } })
      reading.parse = async (parse: () => object) => ({ parsed: parse(), notes: { unusedKeys: [] } })
      const measure = { op: 'sum', field: 'attribute_values.total' } as const
      await readMeasuredPage(reading, 0, { field: 'incoming.orders.buyer', measure }, position, {})
      expect(queries).toHaveLength(1)
      for (const query of queries) await expectOnce(query)
    })

    // kith analyzes its tables from the 64th entity of an organization on, and after a restore.
    if (hasStatistics)
      it('groups by a field of the targets read all links once', async () => {
        const { definitions } = tenants[name]
        const stack_id = definitions.stacks.find(({ key }) => key === 'orders')!.id
        const body = { group_by: ['attribute_values.buyer.attribute_values.country'] }
        const { aggregate } = aggregateStatements(parseAggregate(body, definitions, stack_id), definitions, stack_id)
        await expectOnce({ ...aggregate(false), settings: groupByHashSql })
      })
  })
})
