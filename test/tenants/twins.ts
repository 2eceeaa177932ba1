import { isDeepStrictEqual } from 'node:util'
import type { CopyInto } from '../../src/db/copy.ts'
import { type Database, type Row, type Statement, statement, type Transaction } from '../../src/db/db.ts'
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

/** Makes PostgreSQL note in each transaction which tables of the twin it changes. */
export async function noteChangesOf(service: Service, tables: string[], twinId: number): Promise<void> {
  await service.sql(`create function note_change() returns trigger language plpgsql as $$
    begin
      if ${twinId} in (old.organization_id, new.organization_id) then
        perform set_config('twin.changed', tg_table_name, true);
      end if;
      return null;
    end $$`)
  for (const table of tables)
    await service.sql(
      `create trigger note_change after insert or update or delete on ${table} for each row execute function note_change()`,
    )
}

const readChange = statement(
  '',
  `select coalesce(current_setting('twin.changed', true), '') as table_name, set_config('twin.changed', '', true)`,
)

export type TwinWatch = {
  /** How often each statement ran for the organization, by name. */
  executions: Map<string, number>
  /** Statements that changed a row of the twin, or returned other rows while the twin's rows were deleted. */
  leaks: string[]
  /** Stops watching. */
  release(): void
}

/**
 * Watches every statement of a database: asks whether it changed a row of the twin, which noteChangesOf must have prepared, and
 * runs a read a second time with the twin's rows deleted. Statements run one at a time in their order, not in one flush.
 */
export function watchTwin(db: Database, tables: string[], id: number, twinId: number): TwinWatch {
  const { query, transaction } = db
  const watch: TwinWatch = {
    executions: new Map(),
    leaks: [],
    release: () => Object.assign(db, { query, transaction }),
  }
  // No function and no view of the schema reads a table, so a statement reads those that it names.
  const deleteTwin = ({ text }: Statement) => {
    const named = new Set(text.match(/\w+/g))
    const deletions = tables
      .filter(table => named.has(table))
      .map(table => `delete from ${table} where organization_id = ${twinId};`)
    return statement('', `do $$ begin ${deletions.join(' ')} end $$`)
  }
  // The service itself also works for the twin, which is no leak.
  const runWatched = async <T>(
    tx: Transaction,
    { name }: Pick<Statement, 'name'>,
    organizationId: unknown,
    send: () => Promise<T>,
  ): Promise<T> => {
    const result = await send()
    const [change] = await tx.query<{ table_name: string }>(readChange, [])
    if (organizationId === id) watch.executions.set(name, (watch.executions.get(name) ?? 0) + 1)
    if (organizationId !== twinId && change!.table_name) watch.leaks.push(`${name} changed the twin`)
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
    await tx.query(deleteTwin(sqlStatement), [])
    const rows = await tx.query(sqlStatement, values)
    await tx.query(statement('', 'rollback to savepoint alone'), [])
    return rows
  }
  // A snapshot is read-only, and the watch deletes the twin's rows for a moment. Nothing writes beside these statements.
  db.transaction = async (work, options) =>
    transaction(tx => work(serialize(tx, runChecked, copyChecked)), { ...options, isSnapshot: false })
  db.query = (sqlStatement, values, signal) => db.transaction(tx => tx.query(sqlStatement, values), { signal }) as never
  return watch
}

const isRead = ({ text }: Statement) =>
  !/\b(insert into|update (?!of)\w+ (\w+ )?set|delete from|analyze|set local|set_config)\b/.test(text)
const sorted = (rows: Row[]) => rows.map(row => JSON.stringify(row)).sort()

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
