import { constants, createWriteStream } from 'node:fs'
import { access, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { type Config, loadConfig } from '../src/config.ts'
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
  const { header, rows, tables, bytes } = await writeFile(config, { file, path: pathOf(environment, file) }, options)
  const seconds = (performance.now() - startedMs) / 1_000
  const summary = `${formatCount(rows)} rows of ${tables} tables in ${formatDuration(seconds)}, ${formatMegabytes(bytes)}: ${file}`
  const { at, kith, migrations } = header
  printResult(options, {
    value: { file, bytes, rows, tables, at, kith, migration: migrations.at(-1) },
    messages: [summary],
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
  try {
    const taken = await takeSnapshot(config, partial, options)
    const { size } = await stat(partial)
    await rename(partial, path)
    await syncFolder(dirname(path))
    return { ...taken, bytes: size }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(partial, { force: true })
    throw describeWriteError(error as NodeJS.ErrnoException, file)
  }
}

async function takeSnapshot(config: Config, partial: string, options: BackupOptions): Promise<Taken> {
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
      withConnection(url, 'kith backup', client =>
        untilAborted(client, abortController.signal, () =>
          takeBackup(client, { version, openTarget, signal: abortController.signal }, progress),
        ),
      ),
    )
  } finally {
    progressLine.end()
    interrupt.end()
  }
}

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
