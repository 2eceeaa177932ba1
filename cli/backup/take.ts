import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { MasterKeys } from '../../src/db/master-keys.ts'
import { throwIfOfBeta } from '../../src/db/migrate.ts'
import { quoted, readMigrations, readSequences, readTables, type Table } from './catalog.ts'
import { type Frame, type Header, writeContainer } from './container.ts'
import { readSigner } from './signature.ts'

/** The progress of a backup: the rows written, and the fraction that is done, 0 to 1. */
export type Progress = { rows: number; fraction: number }

export type Taken = { header: Header; rows: number; tables: number }

/** `version` is kith's version, `keyName` the name of the signing key, and `masterKeys` unwrap this key. */
type Taking = {
  version: string
  keyName: string
  masterKeys: MasterKeys
  openTarget: () => NodeJS.WritableStream
  signal: AbortSignal
}

/**
 * Writes a consistent snapshot of the whole database to a stream. It reads in one transaction of isolation level repeatable
 * read, so other connections can write meanwhile. `progress` is updated as rows are read.
 */
export async function takeBackup(
  client: pg.Client,
  { version, keyName, masterKeys, openTarget, signal }: Taking,
  progress: Progress,
): Promise<Taken> {
  const tables = await beginSnapshot(client)
  const content = await describe(client, version, tables)
  const signer = await readSigner(client, keyName, masterKeys)
  const rows: Record<string, number> = {}
  const frames = readFrames(client, tables, rows, progress)
  const header = await writeContainer(openTarget(), content, frames, { signer, signal })
  await client.query('commit')
  return { header, rows: progress.rows, tables: tables.length }
}

/** Locks the tables before the snapshot, so that no migration changes a table in between. Returns the tables. */
async function beginSnapshot(client: pg.Client): Promise<Table[]> {
  const names = (tables: Table[]) => tables.map(({ name }) => name).join()
  const tablesBefore = await readTables(client)
  await client.query('begin transaction isolation level repeatable read, read only')
  if (tablesBefore.length > 0)
    await client.query(`lock table ${tablesBefore.map(({ name }) => quoted(name)).join(', ')} in access share mode`)
  const tables = await readTables(client)
  if (names(tables) !== names(tablesBefore))
    throw new Error('A migration ran while the backup started. Run the command again.')
  return tables
}

async function describe(client: pg.Client, version: string, tables: Table[]) {
  const migrations = await readMigrations(client)
  if (migrations.length === 0)
    throw new Error('There is nothing to back up: the database has no tables of kith. Check DATABASE_URL.')
  if (!tables.some(({ name }) => name === 'organizations'))
    throw new Error(
      'The tables of kith are not in the schema public, and a backup would have none of them. Move them, as docs/backups.md describes ' +
        '(What a backup holds).',
    )
  // This version could not restore such a backup.
  throwIfOfBeta(migrations)
  const { rows } = await client.query(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, current_setting('server_version') as postgresql`,
  )
  return {
    kith: version,
    ...(rows[0] as { at: string; postgresql: string }),
    compression: 'zstd' as const,
    migrations,
    tables: tables.map(({ name, columns }) => ({ name, columns })),
  }
}

async function* readFrames(
  client: pg.Client,
  tables: Table[],
  rows: Record<string, number>,
  progress: Progress,
): AsyncGenerator<Frame> {
  const total = tables.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (const { name, columns, bytes } of tables) {
    yield { type: 'table', name }
    let [count, copied] = [0, 0]
    for await (const piece of client.query(copyTo(copyOf(name, columns, 'to stdout')))) {
      const rowsInPiece = linesIn(piece)
      count += rowsInPiece
      copied += piece.length
      progress.rows += rowsInPiece
      progress.fraction = (done + Math.min(copied, bytes)) / total
      yield { type: 'rows', bytes: piece }
    }
    rows[name] = count
    done += bytes
  }
  yield { type: 'end', end: { rows, sequences: await readSequences(client) } }
}

/**
 * A COPY statement for these columns. COPY's text format is the same for every version of PostgreSQL: one row per line, with
 * line feeds in values escaped.
 */
export function copyOf(name: string, columns: string[], direction: 'to stdout' | 'from stdin'): string {
  // A table without columns can have rows too, but COPY accepts no empty list.
  const list = columns.length > 0 ? ` (${columns.map(pg.escapeIdentifier).join(', ')})` : ''
  return `copy ${quoted(name)}${list} ${direction}`
}

/** Counts the row ends in a piece of COPY's text. */
export function linesIn(piece: Buffer): number {
  let count = 0
  for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) count++
  return count
}
