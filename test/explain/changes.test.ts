import { afterAll, beforeAll, expect, it } from 'vitest'
import { everything, filterValuesOf } from '../../src/changes/selection.ts'
import { readChangesOfSql, readChangesSql, readHeadsSql, readHistorySql } from '../../src/changes/sql.ts'
import type { Statement } from '../../src/db/db.ts'
import {
  demoteDeliveriesSql,
  promoteDeliveriesSql,
  readBacklogsSql,
  readDueSql,
  recordAttemptsSql,
} from '../../src/webhooks/sql.ts'
import { type Service, startService } from '../support/service.ts'

// One large log next to many small ones: PostgreSQL's average statistics do not fit the large one.
const changes = 60_000
const entities = 600
const smallOrganizations = 2_000

let service: Service
let id: number
beforeAll(async () => {
  service = await startService()
  ;({ id } = await service.organization())
  const insert = (organization: string, last: number) =>
    service.sql(
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
         actor, request_id)
       select ${organization}, i, now(), 'entity', 0, ('01900000-0000-7000-8000-' || lpad(to_hex(i % ${entities}), 12, '0'))::uuid,
         'update', 1 + i / ${entities}, '{}', '{"first_name": "Ada"}', 'a', 'r' from generate_series(1, $1::integer) i`,
      [last],
    )
  await insert(`${id}`, changes)
  await insert('100000 + i', smallOrganizations)
  await service.sql('update change_heads set sequence = $2 where organization_id = $1', [id, changes])
  await service.sql('analyze')
}, 120_000)
afterAll(() => service.stop())

type Node = {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/** The nodes of the plan that the statement runs with. */
async function explain({ text }: Statement, values: unknown[]): Promise<Node[]> {
  const [row] = await service.sql<{ 'QUERY PLAN': { Plan: Node }[] }>(`explain (analyze, format json) ${text}`, values)
  return nodesOf(row!['QUERY PLAN'][0]!.Plan)
}

const rowsRead = (node: Node) =>
  (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * Math.max(node['Actual Loops'], 1)

const indexesOf = (nodes: Node[]) => new Set(nodes.flatMap(node => node['Index Name'] ?? []))

it('a page of the feed reads a range of the primary key, and no more changes than it has', async () => {
  const values = [id, 30_000, 50_000, 100, 1_048_576, ...filterValuesOf(everything)]
  const nodes = await explain(readChangesSql, values)
  expect(nodes.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
  expect(indexesOf(nodes)).toContain('changes_pkey')
  expect(Math.max(...nodes.map(rowsRead))).toBeLessThanOrEqual(101)
})

it('the changes of deliveries are read by their numbers, and no others', async () => {
  const sequences = Array.from({ length: 64 }, (_, n) => 50_000 - 300 * n)
  const nodes = await explain(readChangesOfSql, [id, sequences, 4_194_304])
  expect(nodes.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
  expect(indexesOf(nodes)).toContain('changes_pkey')
  expect(Math.max(...nodes.map(rowsRead))).toBeLessThanOrEqual(64)
})

it.each([200, 20_000])(
  'the statements of a webhook with %i waiting deliveries read only their batch, also without statistics',
  async waiting => {
    const webhook = waiting
    const now = new Date().toISOString()
    await service.sql(
      `insert into webhook_deliveries (organization_id, webhook_id, sequence, entity, type, status, created_at, next_attempt_at)
     select $1, $2, n, 'entity ' || n % 10000, 'person.updated', case when n > 20000 - $2 then 'waiting' else 'delivered' end, $3,
       case when n > 19900 then $3::timestamptz end
     from generate_series(1, 20000) n`,
      [id, webhook, now],
    )
    const numbers = Array.from({ length: 64 }, (_, n) => 19_801 + n)
    const names = numbers.map(number => `entity ${number % 10_000}`)
    const result = { status: 'delivered', attempts: 1, duration_ms: 5 }
    const results = Object.fromEntries(numbers.map(sequence => [sequence, result]))
    for (const [statement, values] of [
      [promoteDeliveriesSql, [id, webhook, names, now]],
      [recordAttemptsSql, [id, webhook, JSON.stringify(results), now, numbers]],
      [readDueSql, [id, webhook, now, [], 64]],
      [demoteDeliveriesSql, [id, webhook, names]],
    ] as const) {
      const nodes = await explain(statement, [...values])
      expect(Math.max(...nodes.map(rowsRead)), statement.name).toBeLessThanOrEqual(64)
    }
    await service.sql('insert into webhooks select * from jsonb_populate_record(null::webhooks, $1)', [
      {
        organization_id: id,
        id: webhook,
        url: '',
        events: [],
        payload: 'full',
        active: true,
        secrets: [],
        tests: [],
        created_at: now,
        updated_at: now,
      },
    ])
    const backlog = await explain(readBacklogsSql, [id, [webhook], now])
    expect(Math.max(...backlog.map(rowsRead))).toBeLessThanOrEqual(waiting)
  },
)

it('a page with a filter that nothing matches reads its range once', async () => {
  const selection = { ...everything, operations: ['delete' as const] }
  const values = [id, 30_000, 50_000, 100, 1_048_576, ...filterValuesOf(selection)]
  const nodes = await explain(readChangesSql, values)
  expect(nodes.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
  expect(Math.max(...nodes.map(rowsRead))).toBeLessThanOrEqual(20_000)
})

it('a history reads no more changes than its page has', async () => {
  const entity = '01900000-0000-7000-8000-000000000007'
  const nodes = await explain(readHistorySql, [id, entity, 0, 90, 11, 1_048_576])
  expect(indexesOf(nodes)).toContain('changes_entity')
  expect(Math.max(...nodes.map(rowsRead))).toBeLessThanOrEqual(12)
})

it('the heads of the organizations that are followed are looked up by their keys', async () => {
  const nodes = await explain(readHeadsSql, [[id, id + 1]])
  expect(indexesOf(nodes)).toEqual(new Set(['change_heads_pkey', 'erasures_pkey', 'followers_pkey']))
})
