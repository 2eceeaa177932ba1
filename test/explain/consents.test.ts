import { afterAll, beforeAll, expect, it } from 'vitest'
import { findOtherHoldersSql } from '../../src/changes/people-sql.ts'
import { readContactFacts, readManyContactFactsSql } from '../../src/consents/contactable-sql.ts'
import { readConsentHistory } from '../../src/consents/recorded-answers-sql.ts'
import { readConsentStatisticsSql } from '../../src/consents/statistics-sql.ts'
import type { Statement } from '../../src/db/db.ts'
import { readAnswersSql, readUnsealedSql } from '../../src/ledger/sql.ts'
import { findSubject } from '../../src/rights/dossier-sql.ts'
import { findByIdSql, findNamedSql } from '../../src/rights/erasure-sql.ts'
import { type Service, startService } from '../support/service.ts'
import { names } from '../support/writes.ts'

// One large organization next to many small ones: PostgreSQL's average statistics do not fit the large one.
const people = 20_000
const smallOrganizations = 2_000

let service: Service
let id: number
beforeAll(async () => {
  service = await startService()
  ;({ id } = await service.organization())
  const insert = async (organization: string, last: number) => {
    const person = `('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`
    for (const statement of [
      `insert into entities (organization_id, stack_id, id, external_id, active, version, email, answers, created_at, updated_at)
       select ${organization}, 0, ${person}, 'p' || i, true, 1, 'a@example.com',
         jsonb_build_object(1 + i % 2 || ':email', jsonb_build_object('state', true)), now(), now()`,
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
         request_id)
       select ${organization}, i, now(), 'entity', 0, ${person}, 'update', 1, '{"external_id": "x"}', '{}', 'a', 'r'`,
      `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, state, source, at, actor,
         request_id)
       select ${organization}, ${person}, 1, 1 + i % 2, 'email', true, 'entry', now(), 'a', 'r'`,
    ])
      await service.sql(`${statement} from generate_series(1, $1::integer) i`, [last])
  }
  await insert(`${id}`, people)
  await insert('100000 + i', smallOrganizations)
  // Some people were deleted, and some merged.
  const personOf = (number: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`
  await service.sql(
    `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
       request_id)
     select $1, $2::integer + i, now(), 'entity', 0, ${personOf('10000 + i')}, 'delete', 2, '{}', '{}', 'a', 'r'
     from generate_series(1, 2000) i`,
    [id, people],
  )
  await service.sql(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo)
     select $1, i, ${personOf('2000 + i')}, ${personOf('4000 + i')}, ${personOf('4000 + i')}, $2::integer + i, now(), '{"answers": []}'
     from generate_series(1, 1000) i`,
    [id, 2 * people],
  )
  await service.sql(
    `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
       request_id)
     select $1, $2::integer + i, now(), 'entity', 0, ${personOf('2000 + i')}, 'merge', 2, jsonb_build_object('external_id', 'm' || i),
       '{}', 'a', 'r'
     from generate_series(1, 1000) i`,
    [id, 2 * people],
  )
  // kith itself keeps the statistics of this table.
  await service.sql('analyze entities')
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

/** The most rows that a node of the statement's plan reads. Throws if one scans a table. */
async function maxRowsRead({ text }: Statement, values: unknown[]): Promise<number> {
  const [row] = await service.sql<{ 'QUERY PLAN': { Plan: Node }[] }>(`explain (analyze, format json) ${text}`, values)
  const nodes = nodesOf(row!['QUERY PLAN'][0]!.Plan)
  expect(nodes.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([])
  return Math.max(...nodes.map(rowsRead))
}

it.each(['without statistics of the log', 'with statistics'])(
  'decisions and histories read only the people and answers that were asked for, %s',
  async statistics => {
    if (statistics === 'with statistics') await service.sql('analyze')
    const asked = [...names('p', 50), ...names('nobody', 50)]
    expect(await maxRowsRead(readManyContactFactsSql, [id, asked, 1, 'email'])).toBeLessThanOrEqual(100)
    expect(await maxRowsRead(readContactFacts.external_id, [id, 'p7', 1, 'email'])).toBeLessThanOrEqual(2)
    const person = '01900000-0000-7000-8000-000000000007'
    expect(await maxRowsRead(readContactFacts.id, [id, person, 1, 'email'])).toBeLessThanOrEqual(2)
    const page = [1_000_000, null, null, 100, 1_048_576]
    expect(await maxRowsRead(readConsentHistory.id, [id, person, ...page])).toBeLessThanOrEqual(2)
    expect(await maxRowsRead(readConsentHistory.external_id, [id, 'p7', ...page])).toBeLessThanOrEqual(2)
    expect(await maxRowsRead(readConsentHistory.external_id, [id, 'nobody', ...page])).toBeLessThanOrEqual(2)
    const gone = '01900000-0000-7000-8000-00000000aaaa'
    expect(await maxRowsRead(readContactFacts.id, [id, gone, 1, 'email'])).toBeLessThanOrEqual(2)
    expect(await maxRowsRead(findByIdSql, [id, person])).toBeLessThanOrEqual(2)
    expect(await maxRowsRead(findSubject.id, [id, person])).toBeLessThanOrEqual(2)
    for (const name of ['p7', 'm7', 'nobody']) {
      expect(await maxRowsRead(readContactFacts.external_id, [id, name, 1, 'email'])).toBeLessThanOrEqual(2)
      expect(await maxRowsRead(findNamedSql, [id, name])).toBeLessThanOrEqual(2)
      expect(await maxRowsRead(findSubject.external_id, [id, name])).toBeLessThanOrEqual(2)
      expect(await maxRowsRead(findOtherHoldersSql, [id, name, person, 100])).toBeLessThanOrEqual(2)
    }
  },
)

it.each(['without statistics of the log', 'with statistics'])(
  'the sealing reads the changes of its part, and the answers of those whose values were removed, %s',
  async statistics => {
    if (statistics === 'with statistics') await service.sql('analyze')
    for (const reading of [readAnswersSql, readUnsealedSql])
      expect(await maxRowsRead(reading, [id, 10_000, 10_100, 2_000])).toBeLessThanOrEqual(100)
  },
)

it.each(['without statistics of the log', 'with statistics'])(
  'the numbers of answers read each answer and each person at most twice, %s',
  async statistics => {
    if (statistics === 'with statistics') await service.sql('analyze')
    const ends = ['2026-01-01T00:00:00Z', 'infinity']
    const values = [id, ends, null, null]
    expect(await maxRowsRead(readConsentStatisticsSql, values)).toBeLessThanOrEqual(2 * people)
  },
)
