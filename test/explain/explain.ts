import pg from 'pg'
import { expect } from 'vitest'
import { type Database, type Statement, statement, type Transaction } from '../../src/db/db.ts'
import type { Sent } from './sent.ts'

type Node = {
  'Node Type': string
  'Scan Direction'?: string
  'Relation Name'?: string
  Alias?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
} & Record<string, unknown>

/** The maximum number of rows that a step of a statement read, the tables that it scanned whole, and its indexes. */
export type Reads = { rows: number; scanned: string[]; indexes: Set<string> }

/** A step of a plan, and the rows that it read in all its runs. One that did not run read none. */
export type Step = {
  type: string
  table: string | undefined
  alias: string | undefined
  index: string | undefined
  condition: string
  rows: number
  loops: number
}

/** The plan of a statement that was run. `text` names each step as PostgreSQL does. */
export type Plan = Reads & { text: string; steps: Step[] }

/** The state of PostgreSQL when it plans a statement. */
export type Knowledge = {
  /** Tables that were never analyzed. */
  unknownTables?: string[]
  /** Whether PostgreSQL plans for any values, as on kith's connections unless a statement before sets otherwise. */
  generic?: boolean
  /** Statements that prepare the transaction. */
  before?: readonly string[]
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

/** Runs EXPLAIN ANALYZE for a statement in a transaction, under the options of kith's connections, and undoes it. */
export function explain(
  tx: Pick<Transaction, 'query'>,
  { text }: Pick<Statement, 'text'>,
  values: readonly unknown[],
  knowledge: Knowledge = {},
): Promise<Plan> {
  return undoing(tx, knowledge, async run => {
    await run(`prepare explained as ${text}`)
    const literals = values.map(literalOf)
    const rows = await run<Explained>(`${explaining} execute explained${literals.length > 0 ? `(${literals})` : ''}`)
    await run('deallocate explained')
    return planFrom(rows)
  })
}

/** The plan of a statement as kith runs it: prepared for any values, or for its own values under its settings. */
export function planOf(db: Database, { text, values, settings }: Sent, knowledge: Knowledge = {}): Promise<Plan> {
  return db.transaction(tx =>
    settings
      ? undoing(tx, { ...knowledge, before: settings }, async run =>
          planFrom(await run<Explained>(`${explaining} ${text}`, [...values])),
        )
      : explain(tx, { text }, values, knowledge),
  )
}

/** The rows that a plan read from a table, in all. */
export const rowsFrom = ({ steps }: Plan, table: string, alias?: string): number =>
  steps
    .filter(step => step.table === table && (alias === undefined || step.alias === alias))
    .reduce((sum, { rows }) => sum + rows, 0)

const explaining = 'explain (analyze, timing off, format json)'

type Explained = { 'QUERY PLAN': [{ Plan: Node }] }

function planFrom([row]: readonly Explained[]): Plan {
  const root = row!['QUERY PLAN'][0].Plan
  const steps = nodesOf(root).map(stepOf)
  return {
    rows: Math.max(...steps.map(({ rows }) => rows)),
    scanned: steps.filter(({ type }) => type === 'Seq Scan').map(({ table }) => table!),
    indexes: new Set(steps.flatMap(({ index }) => index ?? [])),
    steps,
    text: print(root),
  }
}

const literalOf = (value: unknown) =>
  value === null
    ? 'null'
    : pg.escapeLiteral(Array.isArray(value) ? `{${value.map(each => JSON.stringify(each))}}` : String(value))

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

/** The alias of the statement. PostgreSQL numbers those that it uses several times. */
const aliasOf = ({ Alias }: Node) => Alias?.replace(/_\d+$/, '')

const stepOf = (node: Node): Step => ({
  type: node['Node Type'],
  table: node['Relation Name'],
  alias: aliasOf(node),
  index: node['Index Name'],
  condition: String(node['Index Cond'] ?? ''),
  rows: rowsOf(node),
  loops: node['Actual Loops'],
})

const rowsOf = (node: Node) =>
  (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) *
  node['Actual Loops']

const printedMembers = ['Index Cond', 'Filter', 'One-Time Filter', 'Join Filter', 'Sort Key', 'Rows Removed by Filter']

/** Prints a plan with its parts indented, as EXPLAIN does. */
function print(node: Node, depth = 0): string {
  const indent = '  '.repeat(depth)
  const name = node['Subplan Name'] ? `${node['Subplan Name']}: ` : ''
  const backward = node['Scan Direction'] === 'Backward' ? ' Backward' : ''
  const index = node['Index Name'] ? ` using ${node['Index Name']}` : ''
  const table = node['Relation Name'] ? ` on ${node['Relation Name']} ${aliasOf(node)}` : ''
  const loops = node['Actual Loops']
  const ran = loops > 0 ? `(actual rows=${node['Actual Rows']} loops=${loops})` : '(never executed)'
  const members = printedMembers
    .filter(member => node[member])
    .map(member => `\n${indent}    ${member}: ${node[member]}`)
  const parts = (node.Plans ?? []).map(part => `\n${print(part, depth + 1)}`)
  return `${indent}${name}${node['Node Type']}${backward}${index}${table} ${ran}${members.join('')}${parts.join('')}`
}
