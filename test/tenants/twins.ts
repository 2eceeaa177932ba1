import { isDeepStrictEqual } from 'node:util'
import type { CopyInto } from '../../src/db/copy.ts'
import { type Database, type Row, type Statement, statement, type Transaction } from '../../src/db/db.ts'
import { digestSqlOf } from '../hostile/test-tenant.ts'
import type { Service } from '../support/service.ts'

/** Returns the names of all tables with an organization's data. */
export async function tablesOf(service: Service): Promise<string[]> {
  const rows = await service.sql<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'organization_id' order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Replaces the rows of organization `twinId` with copies of those of `id`, with the same identifiers. */
export async function copyRows(service: Service, tables: string[], id: number, twinId: number): Promise<void> {
  for (const table of tables) {
    await service.sql(`delete from ${table} where organization_id = $1`, [twinId])
    await service.sql(
      `insert into ${table} select (jsonb_populate_record(null::${table},
         to_jsonb(t) || jsonb_build_object('organization_id', $2::integer))).* from ${table} t where organization_id = $1`,
      [id, twinId],
    )
  }
}

export type TwinWatch = {
  /** How often each statement ran for the organization, by name. */
  executions: Map<string, number>
  /** Statements that changed a row of the twin, or returned other rows while the twin's rows were deleted. */
  leaks: string[]
  /** Stops watching. */
  release(): void
}

/**
 * Watches every statement of a database: compares the twin's rows before and after it, and runs a read a second time with the
 * twin's rows deleted. Statements run one at a time in their order, not in one flush.
 */
export function watchTwin(db: Database, tables: string[], id: number, twinId: number): TwinWatch {
  const { query, transaction } = db
  const watch: TwinWatch = {
    executions: new Map(),
    leaks: [],
    release: () => Object.assign(db, { query, transaction }),
  }
  const digest = digestStatement(tables)
  // The service itself also works for the twin. What it commits meanwhile is no leak.
  const others = { begun: 0, ended: 0 }
  const runWatched = async <T>(
    tx: Transaction,
    { name }: Pick<Statement, 'name'>,
    organizationId: unknown,
    send: () => Promise<T>,
  ): Promise<T> => {
    if (organizationId === twinId) return send()
    const { begun, ended } = others
    const before = await tx.query(digest, [twinId])
    const result = await send()
    const after = await tx.query(digest, [twinId])
    if (organizationId === id) watch.executions.set(name, (watch.executions.get(name) ?? 0) + 1)
    const isAlone = begun === ended && begun === others.begun
    if (isAlone && !isDeepStrictEqual(before, after)) watch.leaks.push(`${name} changed the twin`)
    return result
  }
  const runChecked = async (tx: Transaction, sqlStatement: Statement, values: unknown[]): Promise<Row[]> => {
    const rows = await runWatched(tx, sqlStatement, values[0], () => tx.query(sqlStatement, values))
    if (
      values[0] === id &&
      isRead(sqlStatement) &&
      !isDeepStrictEqual(sorted(rows), sorted(await runWithoutTwin(tx, sqlStatement, values)))
    )
      watch.leaks.push(`${sqlStatement.name} read the twin`)
    return rows
  }
  const copyChecked = async (tx: Transaction, into: CopyInto, rows: readonly Row[]) => {
    const owners = new Set(rows.map(({ organization_id }) => organization_id))
    if (owners.size > 1) watch.leaks.push(`${into.name} appended rows of several organizations`)
    return runWatched(tx, into, [...owners][0], () => tx.append(into, rows))
  }
  const runWithoutTwin = async (tx: Transaction, sqlStatement: Statement, values: unknown[]) => {
    await tx.query(statement('', 'savepoint alone'), [])
    for (const table of tables)
      await tx.query(statement('', `delete from ${table} where organization_id = $1`), [twinId])
    const rows = await tx.query(sqlStatement, values)
    await tx.query(statement('', 'rollback to savepoint alone'), [])
    return rows
  }
  // A snapshot is read-only, and the watch deletes the twin's rows for a moment. Nothing writes beside these statements.
  db.transaction = async (work, options) => {
    let isOfOther = false
    const runCounted: typeof runChecked = (tx, sqlStatement, values) => {
      if (values[0] !== id && !isOfOther) {
        isOfOther = true
        others.begun += 1
      }
      return runChecked(tx, sqlStatement, values)
    }
    try {
      return await transaction(tx => work(serialize(tx, runCounted, copyChecked)), { ...options, isSnapshot: false })
    } finally {
      if (isOfOther) others.ended += 1
    }
  }
  db.query = (sqlStatement, values, signal) => db.transaction(tx => tx.query(sqlStatement, values), { signal }) as never
  return watch
}

const isRead = ({ text }: Statement) =>
  !/\b(insert into|update (?!of)\w+ (\w+ )?set|delete from|analyze|set local|set_config)\b/.test(text)
const sorted = (rows: Row[]) => rows.map(row => JSON.stringify(row)).sort()

function digestStatement(tables: string[]): Statement {
  const parts = tables.map(table => `${digestSqlOf(table)} as ${table}`)
  return statement('', `select ${parts.join(', ')}`)
}

/** Runs concurrent statements one at a time, COMMIT included. */
function serialize(
  tx: Transaction,
  runChecked: (tx: Transaction, sqlStatement: Statement, values: unknown[]) => Promise<Row[]>,
  copyChecked: (tx: Transaction, ...copied: Parameters<Transaction['append']>) => Promise<unknown>,
): Transaction {
  let last: Promise<unknown> = Promise.resolve()
  const enqueue = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }
  return {
    query: (sqlStatement, values) => enqueue(() => runChecked(tx, sqlStatement, values)) as never,
    append: (into, rows) => enqueue(() => copyChecked(tx, into, rows)),
    commit: () => enqueue(() => tx.commit()),
    rollback: () => enqueue(() => tx.rollback()),
  }
}
