import { randomUUID } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { isOfBeta, listMigrations, migrate } from '../../src/db/migrate.ts'
import {
  quoted,
  readMigrations,
  readSequences,
  readTables,
  type Table,
  tablesWithRows,
  untilAborted,
  withConnection,
} from './catalog.ts'
import { type Backup, damaged, type End, type Frame, type Header } from './container.ts'
import { copyOf, linesIn } from './take.ts'

export type Loading = {
  url: string
  backup: Backup
  /** Whether the change logs keep their `log_id`. */
  keepsLogId?: boolean
  signal: AbortSignal
  /** The bytes read from the file, and the rows sent to PostgreSQL. */
  progress: { bytes: number; rows: number }
}

/** `leftOut` are tables of the backup that kith does not have. `migrations` ran after the rows were restored. */
export type Loaded = { rows: number; tables: number; leftOut: string[]; migrations: string[] }

/** Throws if this version of kith cannot restore the backup: a newer version or a beta made it. */
export async function refuseOtherVersions({ kith, migrations }: Header): Promise<void> {
  if (isOfBeta(migrations))
    throw new Error(
      'An earlier beta of kith made the backup, and this version does not read its data: restore it with that beta, and carry ' +
        'every organization over by export and import, as docs/scale.md describes.',
    )
  const known = await listMigrations()
  const unknown = migrations.find((name, index) => name !== known[index])
  if (unknown !== undefined)
    throw new Error(
      `The backup was made by kith ${kith} and has the migration ${unknown}, which this version does not have. Restore it ` +
        `with kith ${kith} or newer.`,
    )
}

/**
 * Restores a backup into an empty database. It runs the migrations of the backup, stores all rows in one transaction, and
 * then runs the newer migrations. Throws if the database has rows, and changes nothing then.
 */
export async function loadBackup(loading: Loading): Promise<Loaded> {
  const { url, backup } = loading
  await makeTables(url, backup.header)
  return withConnection(url, 'kith restore', async client => {
    const loaded = await loadRows(client, loading)
    try {
      const migrations = await migrate(url)
      // Until autovacuum analyzes the tables, the planner assumes that each is small.
      await client.query('analyze')
      return { ...loaded, migrations }
    } catch (cause) {
      throw new Error(
        `All rows are restored, but the migrations after that failed: ${(cause as Error).message} Run kith migrate.`,
        { cause },
      )
    }
  })
}

async function makeTables(url: string, { migrations }: Header) {
  const ran = await withConnection(url, 'kith restore', async client => {
    await refuseRows(client)
    return readMigrations(client)
  })
  const extra = ran.find((name, index) => name !== migrations[index])
  if (extra !== undefined)
    throw new Error(
      `The database has the migration ${extra}, which the backup does not have. Restore into a new database.`,
    )
  if (ran.length < migrations.length) await migrate(url, migrations.length - ran.length)
}

async function refuseRows(client: pg.Client) {
  const names = (await readTables(client)).map(({ name }) => name)
  const filled = await tablesWithRows(client, names)
  if (filled.length === 0) return
  const tables =
    filled.length > 3 ? `${filled.slice(0, 3).join(', ')} and ${filled.length - 3} more` : filled.join(', ')
  throw new Error(
    `The database is not empty: there are rows in ${tables}. Nothing was changed. Restore into a new database ` +
      '(DATABASE_URL), or into a data folder that does not exist yet (KITH_DATA_DIR).',
  )
}

async function loadRows(client: pg.Client, loading: Loading): Promise<Omit<Loaded, 'migrations'>> {
  const stored = await untilAborted(client, loading.signal, () => storeRows(client, loading))
  const { command } = await client.query('commit')
  if (command !== 'COMMIT') throw new Error('PostgreSQL rolled the restore back. Nothing was changed.')
  return stored
}

/**
 * A restored log assigns numbers that clients have seen to other changes. So each log gets a new `log_id`, and the
 * service refuses the old positions.
 */
export async function renewLogIds(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ organization_id: number }>('select organization_id from change_heads')
  const ids = rows.map(({ organization_id }) => organization_id)
  await client.query(
    `update change_heads h set log_id = v.log_id from unnest($1::integer[], $2::uuid[]) as v(organization_id, log_id)
     where h.organization_id = v.organization_id`,
    [ids, ids.map(() => randomUUID())],
  )
}

/** Stores all rows in a transaction, which the caller commits. */
async function storeRows(client: pg.Client, loading: Loading): Promise<Omit<Loaded, 'migrations'>> {
  const { header } = loading.backup
  await client.query('begin')
  // A service that starts during the restore waits for these locks, and then finds the restored data.
  const tables = await readTables(client)
  const locked = [...tables.map(({ name }) => name), 'migrations'].map(quoted).join(', ')
  await client.query(`lock table ${locked} in access exclusive mode`)
  await refuseRows(client)
  if ((await readMigrations(client)).join() !== header.migrations.join())
    throw new Error('A service has migrated the database in the meantime. Stop it and restore into a new database.')
  refuseMissing(header, tables)
  const leftOut = header.tables.map(({ name }) => name).filter(name => !tables.some(table => table.name === name))
  const frames = loading.backup.frames(loading.progress, loading.signal)
  const { rows, end } = await copyTables(client, loading, frames, new Set(leftOut)).finally(() =>
    frames.return(undefined),
  )
  for (const { name } of await readSequences(client))
    if (!end.sequences.some(sequence => sequence.name === name)) throw damaged(`it lacks the sequence ${name}`)
  for (const { name, last_value, is_called } of end.sequences)
    await accept(`the sequence ${name}`, () =>
      client.query('select setval(to_regclass($1), $2, $3)', [quoted(name), last_value, is_called]),
    )
  if (!loading.keepsLogId) await renewLogIds(client)
  return { rows, tables: header.tables.length - leftOut.length, leftOut }
}

/** Throws if the backup lacks a column: COPY would fill it with its default. */
function refuseMissing(header: Header, tables: Table[]) {
  for (const { name, columns } of tables) {
    const found = header.tables.find(table => table.name === name)
    if (!found) throw damaged(`its header lacks the table ${name}`)
    const missing = columns.find(column => !found.columns.includes(column))
    if (missing !== undefined) throw damaged(`its header lacks the column ${missing} of ${name}`)
  }
}

async function copyTables(
  client: pg.Client,
  { backup: { header }, signal, progress }: Loading,
  frames: AsyncGenerator<Frame, undefined>,
  leftOut: Set<string>,
) {
  const columnsOf = new Map(header.tables.map(({ name, columns }) => [name, columns]))
  const stored: Record<string, number> = {}
  let { value: frame } = await frames.next()
  const rowsOfTable = async function* () {
    for (frame = (await frames.next()).value; frame?.type === 'rows'; frame = (await frames.next()).value) {
      progress.rows += linesIn(frame.bytes)
      yield frame.bytes
    }
  }
  while (frame?.type === 'table') {
    const { name } = frame
    const columns = columnsOf.get(name)
    if (!columns) throw damaged(`it has rows of ${name}, which its header does not name`)
    if (Object.hasOwn(stored, name)) throw damaged(`it has the table ${name} twice`)
    if (leftOut.has(name)) {
      for await (const _ of rowsOfTable());
      continue
    }
    const copying = client.query(copyFrom(copyOf(name, columns, 'from stdin')))
    await accept(`the rows of ${name}`, () => pipeline(rowsOfTable, copying, { signal }))
    stored[name] = copying.rowCount
  }
  if (frame?.type !== 'end') throw damaged('its last frame is missing')
  const { end } = frame
  // The frames end here, or throw.
  await frames.next()
  compareCounts(header, end, stored, leftOut)
  return { rows: Object.values(stored).reduce((sum, rows) => sum + rows, 0), end }
}

function compareCounts({ tables }: Header, { rows }: End, stored: Record<string, number>, leftOut: Set<string>) {
  const names = new Set([...tables.map(({ name }) => name), ...Object.keys(rows)])
  for (const name of names)
    if (!leftOut.has(name) && (stored[name] === undefined || stored[name] !== rows[name]))
      throw damaged(
        `the table ${name} got ${stored[name] ?? 'no'} rows, but the last frame counts ${rows[name] ?? 'none'}`,
      )
}

/** Data exceptions, broken constraints, unknown columns, and limits, but not a missing privilege (42501). */
const refusalOfValues = /^(2[123]|42(?!501)|54)/

/** Runs work with values of the backup. If PostgreSQL refuses the values, the error names `what`. */
async function accept(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !refusalOfValues.test(error.code ?? '')) throw error
    throw damaged(`PostgreSQL refuses ${what} (${error.message})`)
  }
}
