import pg from 'pg'
import { expect } from 'vitest'
import { type Database, type Statement, statement, type Transaction } from '../../src/db/db.ts'
import type { Query } from '../../src/filters/select.ts'

type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

/** The maximum number of rows that a step of a statement read, the tables that it scanned whole, and its indexes. */
export type Reads = { rows: number; scanned: string[]; indexes: Set<string> }

/** The state of PostgreSQL when it plans a statement. */
export type Knowledge = {
  /** Tables that were never analyzed. */
  unknownTables?: string[]
  /** It plans for any values, as it does from the sixth time on if that seems to cost no more. */
  generic?: boolean
  /** Statements that prepare the transaction. */
  before?: string[]
}

/** Expects that no step of a statement reads more than `max` rows, and that none scans a whole table. */
export async function expectReads(
  db: Database,
  sent: Statement,
  values: readonly unknown[],
  max: number,
  knowledge: Knowledge = {},
): Promise<void> {
  const { rows, scanned } = await db.transaction(tx => explain(tx, sent, values, knowledge))
  const what = `${sent.name} ${JSON.stringify(knowledge)}`
  expect(scanned, what).toEqual([])
  expect(rows, what).toBeLessThanOrEqual(max)
}

/** Runs EXPLAIN ANALYZE for a statement in a transaction, and undoes it. */
export function explain(
  tx: Pick<Transaction, 'query'>,
  { text }: Statement,
  values: readonly unknown[],
  knowledge: Knowledge = {},
): Promise<Reads> {
  const literals = values.map(value =>
    value === null ? 'null' : Array.isArray(value) ? `'{${value}}'` : pg.escapeLiteral(String(value)),
  )
  return undoing(tx, knowledge, async run => {
    await run(`prepare explained as ${text}`)
    const [row] = await run<{ 'QUERY PLAN': [{ Plan: Node }] }>(
      `explain (analyze, format json) execute explained${literals.length > 0 ? `(${literals})` : ''}`,
    )
    await run('deallocate explained')
    const nodes = nodesOf(row!['QUERY PLAN'][0].Plan)
    return {
      rows: Math.max(...nodes.map(rowsOf)),
      scanned: nodes.filter(node => node['Node Type'] === 'Seq Scan').map(node => node['Relation Name']!),
      indexes: new Set(nodes.flatMap(node => node['Index Name'] ?? [])),
    }
  })
}

/** The plan of a query for its values, as text, with what it read. */
export function planOf(db: Database, { text, values, settings }: Query, knowledge: Knowledge = {}): Promise<string> {
  return db.transaction(tx =>
    undoing(tx, knowledge, async run => {
      await run('set local plan_cache_mode = force_custom_plan')
      if (settings) await run(settings.text)
      const lines = await run<{ 'QUERY PLAN': string }>(`explain (analyze, buffers) ${text}`, values)
      return lines.map(line => line['QUERY PLAN']).join('\n')
    }),
  )
}

/** The most rows that a step of a query reads, in the plan for its values. */
export function rowsRead(db: Database, { text, values, settings }: Query, knowledge: Knowledge = {}): Promise<number> {
  const before = ['set local plan_cache_mode = force_custom_plan', ...(settings ? [settings.text] : [])]
  const read = (tx: Transaction) => explain(tx, { text, name: '' }, values, { ...knowledge, before })
  return db.transaction(async tx => (await read(tx)).rows)
}

type Run = <R extends Record<string, unknown>>(sql: string, values?: unknown[]) => Promise<R[]>

/** Does work with what PostgreSQL is to know, and undoes both. */
async function undoing<T>(
  tx: Pick<Transaction, 'query'>,
  { unknownTables = [], generic = false, before = [] }: Knowledge,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const run: Run = (sql, values = []) => tx.query(statement('', sql), values)
  await run('savepoint explained')
  for (const table of unknownTables) await forget(run, table)
  for (const sql of before) await run(sql)
  if (generic) await run('set local plan_cache_mode = force_generic_plan')
  const result = await work(run)
  await run('rollback to savepoint explained')
  return result
}

/** Removes what PostgreSQL knows of a table and its indexes, as if it had never been analyzed. */
async function forget(run: Run, table: string) {
  await run(`delete from pg_statistic where starelid = '${table}'::regclass`)
  await run(
    `update pg_class set reltuples = -1, relpages = 0, relallvisible = 0 where oid = '${table}'::regclass
       or oid in (select indexrelid from pg_index where indrelid = '${table}'::regclass)`,
  )
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

const rowsOf = (node: Node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
