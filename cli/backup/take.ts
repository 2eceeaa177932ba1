import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { quoted, readMigrations, readSequences, readTables, type Table } from './catalog.ts'
import { type Frame, formatVersion, type Header, writeContainer } from './container.ts'

/** How far a backup is: `part` is from 0 to 1. */
export type Progress = { rows: number; part: number }

export type Taken = { header: Header; rows: number; tables: number }

/**
 * Writes all that the database holds, as it stands at one moment, to a stream. The connection is in one transaction of
 * isolation level repeatable read; others go on writing.
 */
export async function takeBackup(
  client: pg.Client,
  { version, openTarget, signal }: { version: string; openTarget: () => NodeJS.WritableStream; signal: AbortSignal },
  progress: Progress,
): Promise<Taken> {
  const tables = await beginSnapshot(client)
  const header = await describe(client, version, tables)
  const rows: Record<string, number> = {}
  const frames = readFrames(client, tables, rows, progress)
  await writeContainer(openTarget(), header, frames, signal)
  await client.query('commit')
  return { header, rows: progress.rows, tables: tables.length }
}

/** The tables are locked before the snapshot is taken, so that no migration changes one of them in between. */
async function beginSnapshot(client: pg.Client): Promise<Table[]> {
  const names = (tables: Table[]) => tables.map(({ name }) => name).join()
  const seen = await readTables(client)
  await client.query('begin transaction isolation level repeatable read, read only')
  if (seen.length > 0)
    await client.query(`lock table ${seen.map(({ name }) => quoted(name)).join(', ')} in access share mode`)
  const tables = await readTables(client)
  if (names(tables) !== names(seen)) throw new Error('A migration ran while the backup began. Run the command again.')
  return tables
}

async function describe(client: pg.Client, version: string, tables: Table[]): Promise<Header> {
  const migrations = await readMigrations(client)
  if (migrations.length === 0) throw new Error('There is nothing to back up: the database holds no tables of kith.')
  const { rows } = await client.query(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, current_setting('server_version') as postgresql`,
  )
  return {
    format: 'kith-backup',
    version: formatVersion,
    kith: version,
    ...(rows[0] as { at: string; postgresql: string }),
    compression: 'zstd',
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
      const ended = linesIn(piece)
      count += ended
      copied += piece.length
      progress.rows += ended
      progress.part = (done + Math.min(copied, bytes)) / total
      yield { type: 'rows', bytes: piece }
    }
    rows[name] = count
    done += bytes
  }
  yield { type: 'end', end: { rows, sequences: await readSequences(client) } }
}

/** COPY's text format, which is the same for every version of PostgreSQL: a row a line, line feeds in values are escaped. */
export function copyOf(name: string, columns: string[], direction: 'to stdout' | 'from stdin'): string {
  // A table without columns has rows too; COPY wants no empty list.
  const list = columns.length > 0 ? ` (${columns.map(pg.escapeIdentifier).join(', ')})` : ''
  return `copy ${quoted(name)}${list} ${direction}`
}

/** The rows that end within a piece of COPY's text. */
export function linesIn(piece: Buffer): number {
  let count = 0
  for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) count++
  return count
}
