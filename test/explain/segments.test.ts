import { afterAll, beforeAll, expect, it } from 'vitest'
import { everything, segmentValuesOf } from '../../src/changes/selection.ts'
import { readSegmentChangesSql } from '../../src/changes/sql.ts'
import type { Statement, Transaction } from '../../src/db/db.ts'
import { deleteMembershipsSql, insertSegmentChecksSql } from '../../src/entities/erase/erase-sql.ts'
import { readMatchesOf, readNextMatches } from '../../src/filters/membership.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { currentDefinitions } from '../../src/organizations/definitions.ts'
import {
  deleteMembersSql,
  forgetSegmentMembersSql,
  readBatchSql,
  readMembersBetweenSql,
  readMembershipsSql,
  readSourcesOfSql,
  readSourcesSql,
} from '../../src/segments/sql.ts'
import { type Service, startService } from '../support/service.ts'
import { makeShop, type Shop } from '../support/writes.ts'

// One large organization next to many small ones.
const people = 30_000
const smallOrganizations = 1_000

let service: Service
let shop: Shop
const idOf = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const idSql = `('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`
const ids = Array.from({ length: 100 }, (_, n) => idOf(1 + n * 300))

beforeAll(async () => {
  service = await startService()
  shop = await makeShop(service)
  const insert = async (organization: string, last: number) => {
    for (const text of [
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
       select ${organization}, 0, ${idSql}, 'p' || i, true, 1, jsonb_build_object('score', i), now(), now()
       from generate_series(1, $1::integer) i`,
      `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
       select ${organization}, ${idSql}, 1, 0, '${idOf(1)}', 0 from generate_series(2, $1::integer) i`,
      `insert into segment_members (organization_id, person_id, segment_id)
       select ${organization}, ${idSql}, s from generate_series(1, $1::integer) i, generate_series(1, 3) s`,
      `insert into segment_changes (organization_id, segment_id, sequence, person_id, entered)
       select ${organization}, s, i, ${idSql}, true from generate_series(1, $1::integer) i, generate_series(1, 3) s`,
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor, request_id)
       select ${organization}, i, now(), 'entity', 0, ${idSql}, 'update', 1, '{}', '{}', 'a', 'r'
       from generate_series(100, $1::integer) i`,
    ])
      await service.sql(text, [last])
  }
  await insert(`${shop.id}`, people)
  await insert('100000 + i', smallOrganizations)
  await service.sql(`insert into followers (organization_id, name, sequence) values ($1, 'segments', $2)`, [
    shop.id,
    people,
  ])
  // The service analyzes this table itself as an organization grows.
  await service.sql('analyze entities')
  await service.sql('update change_heads set sequence = $2 where organization_id = $1', [shop.id, people])
}, 120_000)
afterAll(() => service.stop())

type Node = {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}
const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
const rowsRead = (node: Node) =>
  (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * Math.max(node['Actual Loops'], 1)

async function expectReads({ name, text }: Statement, values: unknown[], max: number) {
  const [row] = await service.sql<{ 'QUERY PLAN': { Plan: Node }[] }>(`explain (analyze, format json) ${text}`, values)
  const nodes = nodesOf(row!['QUERY PLAN'][0]!.Plan)
  expect([name, nodes.filter(node => node['Node Type'] === 'Seq Scan')]).toEqual([name, []])
  expect(Math.max(...nodes.map(rowsRead)), name).toBeLessThanOrEqual(max)
}

it.each(['without', 'with'])('the statements of segments read only what they return, %s statistics', async kind => {
  if (kind === 'with') await service.sql('analyze')
  const [first, last] = [idOf(1_000), idOf(2_000)]
  const selection = { ...everything, segments: { ids: [1], since: 0 } }
  await expectReads(readBatchSql, [shop.id, 5_000, people, 1_000], 1_000)
  await expectReads(readSegmentChangesSql, [shop.id, 5_000, 5_500, 50, 1_048_576, ...segmentValuesOf(selection)], 500)
  await expectReads(readMembershipsSql, [shop.id, ids], 3 * ids.length)
  await expectReads(readMembersBetweenSql, [shop.id, [1], first, last], 1_000)
  await expectReads(readSourcesSql, [shop.id, ids, [1], 1_001], 1_001)
  await expectReads(readSourcesOfSql, [shop.id, idOf(1), 1, idOf(20_000), 1_000], 1_000)
  await expectReads(deleteMembersSql, [shop.id, ids.map(() => 9), ids], ids.length)
  // Without statistics, a batch reads all entries of the segment. It runs once for a deleted segment, behind the writes.
  if (kind === 'with') await expectReads(forgetSegmentMembersSql, [shop.id, [2], 100], 100)
  await expectReads(insertSegmentChecksSql, [shop.id, [idOf(29_999)]], 1)
  await expectReads(deleteMembershipsSql, [shop.id, [idOf(kind === 'with' ? 7_001 : 7_002)]], 6)
})

it('people are tested by their ids, or in order of id, whatever the filter', async () => {
  const definitions = await currentDefinitions(service.db, shop.id)
  const filters = [
    { 'attribute_values.score': { $gte: 5 } },
    { 'attribute_values.referrer': { $some: { 'attribute_values.score': 1 } } },
    { $not: { external_id: 'p7' } },
  ]
  const conditions = filters.map(filter => parseFilter(filter, definitions, 0).condition)
  const tested: Statement[] = []
  const values: unknown[][] = []
  const tx: Pick<Transaction, 'query'> = {
    query: async (statement, given) => {
      if (given.length === 0) return []
      tested.push(statement)
      values.push(given)
      return []
    },
  }
  await readMatchesOf(tx as Transaction, definitions, conditions, ids)
  await readNextMatches(tx as Transaction, definitions, conditions, { after: idOf(10), limit: 100 })
  expect(tested).toHaveLength(2)
  for (const [index, statement] of tested.entries()) await expectReads(statement, values[index]!, ids.length)
})
