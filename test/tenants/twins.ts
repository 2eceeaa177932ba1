import { isDeepStrictEqual } from 'node:util'
import { type Database, type Row, type Statement, statement, type Transaction } from '../../src/db/db.ts'
import type { Service } from '../support/service.ts'

/** Tables that hold an organization's data. */
export async function tablesOf(service: Service): Promise<string[]> {
  const rows = await service.sql<{ name: string }>(
    `select table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'organization_id' order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Makes `twinId` hold what `id` holds, row by row, with the same identifiers everywhere. */
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

export type Watched = {
  /** How often each statement ran for the organization, by name. */
  ran: Map<string, number>
  /** Statements that changed a row of the twin, or answered otherwise without the twin's rows. */
  leaks: string[]
  /** Lets statements go by unwatched again. */
  release(): void
}

/**
 * Runs every statement of a database between two looks at the twin's rows; one that only reads runs once more in a
 * world without the twin. Statements are sent one after the other, not in one flush: their order stays.
 */
export function watchTwin(db: Database, tables: string[], id: number, twinId: number): Watched {
  const { query, transaction } = db
  const watched: Watched = { ran: new Map(), leaks: [], release: () => Object.assign(db, { query, transaction }) }
  const look = lookAt(tables)
  const around = async <T>(
    tx: Transaction,
    { name }: Statement,
    whose: unknown,
    send: () => Promise<T>,
  ): Promise<T> => {
    if (whose === twinId) return send()
    const before = await tx.query(look, [twinId])
    const result = await send()
    const after = await tx.query(look, [twinId])
    if (whose === id) watched.ran.set(name, (watched.ran.get(name) ?? 0) + 1)
    if (!isDeepStrictEqual(before, after)) watched.leaks.push(`${name} changed the twin`)
    return result
  }
  const run = async (tx: Transaction, asked: Statement, values: unknown[]): Promise<Row[]> => {
    const rows = await around(tx, asked, values[0], () => tx.query(asked, values))
    if (values[0] === id && isRead(asked) && !isDeepStrictEqual(sorted(rows), sorted(await alone(tx, asked, values))))
      watched.leaks.push(`${asked.name} read the twin`)
    return rows
  }
  const alone = async (tx: Transaction, asked: Statement, values: unknown[]) => {
    await tx.query(statement('', 'savepoint alone'), [])
    for (const table of tables)
      await tx.query(statement('', `delete from ${table} where organization_id = $1`), [twinId])
    const rows = await tx.query(asked, values)
    await tx.query(statement('', 'rollback to savepoint alone'), [])
    return rows
  }
  db.transaction = (work, options) => transaction(tx => work(inTurn(tx, run, around)), options)
  db.query = (asked, values, signal) => db.transaction(tx => tx.query(asked, values), { signal }) as never
  return watched
}

const isRead = ({ text }: Statement) =>
  !/\b(insert into|update (?!of)\w+ (\w+ )?set|delete from|analyze|set local|set_config)\b/.test(text)
const sorted = (rows: Row[]) => rows.map(row => JSON.stringify(row)).sort()

function lookAt(tables: string[]): Statement {
  const parts = tables.map(
    table =>
      `(select md5(string_agg(t::text, ';' order by t::text)) from ${table} t where organization_id = $1) as ${table}`,
  )
  return statement('', `select ${parts.join(', ')}`)
}

/** What is sent at once is run one after the other, COMMIT included. */
function inTurn(
  tx: Transaction,
  run: (tx: Transaction, asked: Statement, values: unknown[]) => Promise<Row[]>,
  around: <T>(tx: Transaction, asked: Statement, whose: unknown, send: () => Promise<T>) => Promise<T>,
): Transaction {
  let last: Promise<unknown> = Promise.resolve()
  const enqueue = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }
  return {
    query: (asked, values) => enqueue(() => run(tx, asked, values)) as never,
    copy: (asked, rows) => enqueue(() => around(tx, asked, rows.key, () => tx.copy(asked, rows))),
    commit: () => enqueue(() => tx.commit()),
  }
}
