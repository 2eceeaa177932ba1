import { constants, createWriteStream } from 'node:fs'
import { access, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import type pg from 'pg'
import { type Config, loadConfig } from '../src/config.ts'
import { recordBackupSql } from '../src/operations/sql.ts'
import { version } from '../src/version.ts'
import { untilAborted, withConnection } from './backup/catalog.ts'
import { type Progress, type Taken, takeBackup } from './backup/take.ts'
import { newCommand, printResult } from './command.ts'
import { hasData } from './doctor/storage.ts'
import { pathOf } from './files.ts'
import { formatCount, formatDuration, formatMegabytes, startProgress } from './progress.ts'
import { withServer } from './session.ts'
import { handleInterrupt } from './signal-handling.ts'

type BackupOptions = { force?: true; quiet?: true; json?: true }

export function backupCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Writes a consistent snapshot of the whole database to one compressed file. The service may run meanwhile.'
  return newCommand('backup', description, [
    'backup kith-2027-01-15.backup',
    'DATABASE_URL=postgresql://… backup kith.backup',
  ])
    .argument('<file>', 'The file to write. It holds personal data and the keys that sign tokens.')
    .option('--force', 'Replace an existing file.')
    .option('--quiet', 'Show no progress.')
    .action((file: string, options: BackupOptions) => run(environment, file, options))
}

async function run(environment: NodeJS.ProcessEnv, file: string, options: BackupOptions) {
  const config = loadConfig(environment)
  if (config.databaseUrl === undefined && !(await hasData(config)))
    throw new Error(`There is nothing to back up: ${config.dataDir} holds no data. Set KITH_DATA_DIR or DATABASE_URL.`)
  const startedMs = performance.now()
  const { header, rows, tables, bytes, unrecorded } = await writeFile(
    config,
    { file, path: pathOf(environment, file) },
    options,
  )
  const seconds = (performance.now() - startedMs) / 1_000
  const summary = `${formatCount(rows)} rows of ${tables} tables in ${formatDuration(seconds)}, ${formatMegabytes(bytes)}: ${file}`
  const { at, kith, migrations } = header
  printResult(options, {
    value: { file, bytes, rows, tables, at, kith, migration: migrations.at(-1) },
    messages: [summary, ...(unrecorded === undefined ? [] : [unrecorded])],
  })
}

/** `file` is the name as it was typed, for messages; `path` is where the file is. */
type BackupFile = { file: string; path: string }

/** Writes `<file>.partial`, and renames it once it is complete and synced. An incomplete backup never has the final name. */
async function writeFile(config: Config, { file, path }: BackupFile, options: BackupOptions) {
  const partial = `${path}.partial`
  if (options.force) await rm(partial, { force: true })
  else {
    if (await exists(path)) throw new Error(`${file} exists already. Use --force to replace it.`)
    if (await exists(partial))
      throw new Error(`${file}.partial exists: another backup is running or was killed. Use --force to remove it.`)
  }
  const publish = async () => {
    const { size } = await stat(partial)
    await rename(partial, path)
    await syncFolder(dirname(path))
    return size
  }
  try {
    return await takeSnapshot(config, partial, publish, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(partial, { force: true })
    throw describeWriteError(error as NodeJS.ErrnoException, file)
  }
}

/** A backup that is in its place. `unrecorded` says why the database does not know of it. */
type Published = Taken & { bytes: number; unrecorded: string | undefined }

async function takeSnapshot(
  config: Config,
  partial: string,
  publish: () => Promise<number>,
  options: BackupOptions,
): Promise<Published> {
  const progress: Progress = { rows: 0, fraction: 0 }
  // Mode 600, because the file holds personal data and the private keys.
  const openTarget = () => createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true })
  const abortController = new AbortController()
  const interrupt = handleInterrupt(() => abortController.abort(new Error('Stopped. No backup was written.')))
  const progressLine = startProgress('rows', () => ({ count: progress.rows, fraction: progress.fraction }), {
    silent: Boolean(options.quiet || options.json),
  })
  try {
    return await withServer(config, url =>
      withConnection(url, 'kith backup', async client => {
        const taken = await untilAborted(client, abortController.signal, () =>
          takeBackup(client, { version, openTarget, signal: abortController.signal }, progress),
        )
        const bytes = await publish()
        return { ...taken, bytes, unrecorded: await record(client, taken.header.at) }
      }),
    )
  } finally {
    progressLine.end()
    interrupt.end()
  }
}

/** Stores when the backup was made. A standby, a role that may only read, and tables of an earlier version refuse it. */
const record = (client: pg.Client, at: string): Promise<string | undefined> =>
  client.query(recordBackupSql.text, [at]).then(
    () => undefined,
    (error: Error) =>
      `The database does not store the time of this backup (${error.message}), so /metrics and kith doctor do not know of it.`,
  )

const exists = (path: string) =>
  access(path, constants.F_OK).then(
    () => true,
    () => false,
  )

async function syncFolder(path: string) {
  const folder = await open(path)
  await folder.sync().finally(() => folder.close())
}

function describeWriteError(error: NodeJS.ErrnoException, file: string): Error {
  const isDiskFull = error.code === 'ENOSPC' || error.code === 'EFBIG' || error.code === 'EDQUOT'
  if (isDiskFull)
    return new Error(`${file} cannot be written: the disk has no room (${error.code}). No backup was written.`)
  if (error.syscall === 'open') return new Error(`${file} cannot be written: ${error.message}`)
  return error
}
