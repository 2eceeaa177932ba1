import { beforeAll, describe, expect, it } from 'vitest'
import { statement } from '../../src/db/db.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { prepareSortIndex, readySortIndex } from '../../src/entities/indexes/sort-index.ts'
import { startOf } from '../../src/entities/read/pagination.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { matchingStatements, type Query, type SortKey, sortedStatements } from '../../src/filters/select.ts'
import { parseSort } from '../../src/filters/sort.ts'
import { type Definitions, reloadDefinitions } from '../../src/organizations/definitions.ts'
import { type Service, useOwnService } from '../support/service.ts'

// A manual run with a million people gave the same plans. The plans do not change above some ten thousand.
const people = 30_000
const orders = people / 2

const service = useOwnService()
let organization: Awaited<ReturnType<Service['organization']>>
let definitions: Definitions
beforeAll(async () => {
  organization = await service.organization()
  await declare()
  await populate()
  await backfillIndexes(service.db)
  await service.sql('vacuum analyze')
  definitions = await reloadDefinitions(service.db, organization.id)
}, 300_000)

async function declare() {
  const { send } = organization
  for (const key of ['orders', 'products']) await send('POST', '/v1/schema/stacks', { key, kind: 'item' })
  const attribute = (body: object) => send('POST', '/v1/schema/attributes', body)
  await attribute({ key: 'city', owner: 'people', type: 'text', indexed: true })
  await attribute({ key: 'score', owner: 'people', type: 'number', indexed: true })
  await attribute({ key: 'bought', owner: 'people', type: 'stack', target_stack: 'orders', cardinality: 'many' })
  await attribute({ key: 'product', owner: 'orders', type: 'stack', target_stack: 'products' })
  await attribute({ key: 'maker', owner: 'products', type: 'person' })
}

/** Inserts ten people per city, one order for every second person, and a hundred products made by the first hundred people. */
async function populate() {
  const insert = (stack: string, id: string, name: string, email: string, attributes: string, count: number) =>
    service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, email, attributes, created_at, updated_at)
       select $1, ${stack}, ${id}, ${name}, true, 1, ${email}, ${attributes}, now(), now() from generate_series(0, $2::integer - 1) i`,
      [organization.id, count],
    )
  const stack = (key: string) => `(select id from stacks where organization_id = $1 and key = '${key}')`
  const id = (kind: string) => (n: string) => `('${kind}0000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
  const [person, order, product] = [id('0190'), id('6600'), id('6700')]
  const values = `jsonb_build_object('city', 'city ' || i % ${people / 10}, 'score', i, 'note', 'note ' || i)`
  await service.sql('set synchronous_commit = off')
  await insert('0', person('i'), `'p' || i`, `'p' || i || '@example.org'`, values, people)
  await insert(stack('orders'), order('i'), `'o' || i`, 'null', `'{}'`, orders)
  await insert(stack('products'), product('i'), `'product ' || i`, 'null', `'{}'`, 100)
  const link = (key: string, target_stack: string, source: string, target: string, count: number) =>
    service.sql(
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select $1, ${source}, (select id from attributes where organization_id = $1 and key = '${key}'), ${target_stack}, ${target}, 0
       from generate_series(0, $2::integer - 1) i`,
      [organization.id, count],
    )
  await link('bought', stack('orders'), person('i * 2'), order('i'), orders)
  await link('product', stack('products'), order('i'), product('i % 100'), orders)
  await link('maker', '0', product('i'), person('i'), 100)
}

async function explain(filter: unknown, direction: 'asc' | 'desc' = 'desc') {
  const position = { direction, size: 50 }
  const statements = matchingStatements(parseFilter(filter, definitions, 0).condition, definitions, 0, position)
  return explainQuery(statements.rows(startOf(position), 51, 0))
}

function explainQuery({ text, values, settings }: Query): Promise<string> {
  return service.db.transaction(async tx => {
    await tx.query(statement('', 'set local plan_cache_mode = force_custom_plan'), [])
    if (settings) await tx.query(settings, [])
    const lines = await tx.query<{ 'QUERY PLAN': string }>(statement('', `explain (analyze, buffers) ${text}`), values)
    return lines.map(line => line['QUERY PLAN']).join('\n')
  })
}

const bought = (filter: unknown) => ({ 'attribute_values.bought': { $some: filter } })
const ofProduct = (filter: unknown) => ({ 'attribute_values.product': { $some: filter } })

describe('a filter with an index', () => {
  it.each<[string, unknown, RegExp]>([
    ['an indexed text', { 'attribute_values.city': 'city 77' }, /terms_pkey/],
    ['several indexed texts', { 'attribute_values.city': { $in: ['city 77', 'city 78'] } }, /terms_pkey/],
    ['a range of indexed numbers', { 'attribute_values.score': { $gte: 500, $lt: 600 } }, /terms_pkey/],
    ['an open range of indexed numbers', { 'attribute_values.score': { $gt: people - 20 } }, /terms_pkey/],
    ['an email', { email: 'p77@example.org' }, /entities_email/],
    ['a range of emails', { email: { $gte: 'p77', $lt: 'p771' } }, /entities_email/],
    ['an external identifier', { external_id: 'p77' }, /external_id_key/],
    ['a range of external identifiers', { external_id: { $gte: 'p777', $lt: 'p7771' } }, /external_id_key/],
    ['an internal identifier', { id: '01900000-0000-7000-8000-00000000004d' }, /entities_pkey/],
    ['a relationship by name', { 'attribute_values.bought': 'o77' }, /links_by_target/],
    ['a relationship', bought({ external_id: { $in: ['o77', 'o78'] } }), /links_by_target/],
    ['two relationships in a row', bought(ofProduct({ external_id: 'product 7' })), /links_by_target/],
    [
      'three relationships in a row',
      bought(ofProduct({ 'attribute_values.maker': { $some: { email: 'p7@example.org' } } })),
      /entities_email/,
    ],
    [
      'an $or of these',
      { $or: [{ email: 'p77@example.org' }, { 'attribute_values.city': 'city 77' }, bought({ external_id: 'o77' })] },
      /terms_pkey/,
    ],
    [
      'an indexed condition combined with one without an index',
      { email: 'p77@example.org', 'attribute_values.note': 'note 77' },
      /entities_email/,
    ],
  ])('uses only index scans for %s', async (_, filter, index) => {
    for (const direction of ['asc', 'desc'] as const) {
      const plan = await explain(filter, direction)
      expect(plan).toMatch(index)
      expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
      // The index of the condition finds the candidates first. The plan does not scan the stack in order.
      expect(plan).toMatch(/Index Cond: .*\(id = candidate\.id\)/)
    }
  })
})

it('scans the stack in order for a filter without an index, and stops when the page is full', async () => {
  const plan = await explain({ 'attribute_values.note': { $contains: '7' } })
  expect(plan).toMatch(/Index Scan Backward using entities_pkey on entities e /)
  expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
})

describe('a sorted page', () => {
  async function statementsOf(field: string, direction: 'asc' | 'desc', filter: object = {}) {
    const sort = parseSort({ field, direction }, definitions, 0)
    if (!readySortIndex(definitions, 0, field)) {
      const preparing = prepareSortIndex(service.db, definitions, { stack_id: 0, field, type: sort.type })
      // On a slow machine it does not suffice.
      await preparing.catch(() => backfillIndexes(service.db))
      definitions = await reloadDefinitions(service.db, organization.id)
    }
    const index = readySortIndex(definitions, 0, field)!
    const { condition } = parseFilter(filter, definitions, 0)
    const position = { direction, size: 50 }
    const selection = { condition, definitions, stack_id: 0, sort, index, position }
    return { ...sortedStatements(selection), index }
  }

  /** The rows that the plan reads from `terms`, in all. */
  const termsRead = (plan: string) =>
    [...plan.matchAll(/Index Only Scan.* using terms_pkey on terms t .*actual.* rows=([\d.]+) loops=(\d+)/g)]
      .map(([, rows, loops]) => Number(rows) * Number(loops))
      .reduce((sum, rows) => sum + rows, 0)

  const expectWalk = (plan: string, maxTerms: number) => {
    expect(plan).not.toMatch(/Seq Scan on|Bitmap/)
    expect(plan).toMatch(/Index Cond: .*ROW\(value, entity_id\)|Index Cond: .*value = 'z'/)
    expect(termsRead(plan)).toBeLessThanOrEqual(maxTerms)
    expect(plan).toMatch(/Index Scan using entities_pkey on entities e /)
  }

  const placesOf = async (index_id: number): Promise<(SortKey | undefined)[]> => {
    const at = (offset: number) =>
      service.sql<SortKey>(
        `select value as term, entity_id as id from terms where organization_id = $1 and index_id = $2
         order by value, entity_id offset $3 limit 1`,
        [organization.id, index_id, offset],
      )
    return [undefined, ...(await Promise.all([100, people / 2, people - 60, people - 10].map(at))).flat()]
  }

  it.each([
    ['email', 'asc'],
    ['email', 'desc'],
    ['last_name', 'asc'],
    ['last_name', 'desc'],
    ['attribute_values.score', 'asc'],
    ['attribute_values.score', 'desc'],
    ['updated_at', 'desc'],
  ] as const)(
    'by %s %s reads a page of the index wherever the page lies, also without statistics of the index',
    async (field, direction) => {
      const { walk, index } = await statementsOf(field, direction)
      for (const after of await placesOf(index.id)) expectWalk(await explainQuery(walk(after, 51, 0)), 51)
      await service.sql("delete from pg_statistic where starelid = 'terms'::regclass")
      for (const after of await placesOf(index.id)) expectWalk(await explainQuery(walk(after, 51, 0)), 51)
      await service.sql('analyze terms, entities')
    },
  )

  it('of a filter without an index checks only the entities of its round', async () => {
    for (const direction of ['asc', 'desc'] as const) {
      const { walk } = await statementsOf('email', direction, { 'attribute_values.note': { $contains: '7' } })
      for (const [round, maxTerms] of [
        [0, 102],
        [1, 816],
      ] as const)
        expectWalk(await explainQuery(walk(undefined, 51, round)), maxTerms)
    }
  })

  it('of a filter with few candidates looks up each of them', async () => {
    const filter = { 'attribute_values.city': 'city 77', 'attribute_values.note': { $contains: '7' } }
    const { candidates, rows } = await statementsOf('email', 'asc', filter)
    const plan = await explainQuery(candidates!)
    expect(plan).toMatch(/using terms_pkey on terms x/)
    expect(plan).toMatch(/Index Cond: .*\(id = c\.id\)/)
    expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
    const page = await explainQuery(rows(['01900000-0000-7000-8000-00000000004d']))
    expect(page).toMatch(/Index Scan using entities_pkey on entities e /)
  })
})
