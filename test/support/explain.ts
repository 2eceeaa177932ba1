import pg from 'pg'
import { type Statement, statement, type Transaction } from '../../src/db/db.ts'

type Node = {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

/** Runs EXPLAIN ANALYZE for a statement in a transaction, and undoes it. Returns the maximum number of rows that a step read. */
export async function explain(tx: Transaction, { text }: Statement, values: unknown[]): Promise<number> {
  const run = (sql: string) => tx.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(statement('', sql), [])
  const literals = values.map(value =>
    value === null ? 'null' : Array.isArray(value) ? `'{${value}}'` : pg.escapeLiteral(String(value)),
  )
  await run('savepoint explained')
  await run(`prepare explained as ${text}`)
  const [row] = await run(
    `explain (analyze, format json) execute explained${literals.length > 0 ? `(${literals})` : ''}`,
  )
  await run('deallocate explained')
  await run('rollback to savepoint explained')
  return maxRowsOf(row!['QUERY PLAN'][0].Plan)
}

function maxRowsOf(node: Node): number {
  const ownRows = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
  return Math.max(ownRows, ...(node.Plans ?? []).map(maxRowsOf))
}
