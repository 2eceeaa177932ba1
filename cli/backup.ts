import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Writable } from 'node:stream'
import type pg from 'pg'
import { orMissing } from '../src/db/missing-files.ts'
import { keyFilePath, openMasterKeys } from '../src/keys-at-rest/key-file.ts'
import { recordBackupSql } from '../src/operations/sql.ts'
import { type Config, loadConfig } from '../src/process/config.ts'
import { syncFolder } from '../src/process/sync-folder.ts'
import { version } from '../src/process/version.ts'
import { untilAborted, withConnection } from './backup/catalog.ts'
import { encryptFor } from './backup/encryption.ts'
import { type Progress, type Taken, takeBackup } from './backup/take.ts'
import { addVerify } from './backup/verify.ts'
import { type JsonOption, type Result, UsageError } from './command.ts'
import { hasData } from './doctor/storage.ts'
import { fileExists, isDiskFull, pathOf } from './files.ts'
import { newCommand } from './kith-command.ts'
import { formatCount, formatDuration, formatMegabytes, startProgress } from './progress.ts'
import { withServer } from './session.ts'
import { handleInterrupt } from './signal-handling.ts'

type BackupOptions = JsonOption & { recipient: string[]; force?: true; quiet?: true }

export function backupCommand(environment: NodeJS.ProcessEnv) {
  const backup = newCommand(
    environment,
    'backup',
    'Writes a consistent snapshot of the whole database to one compressed file. The service may run meanwhile.',
  )
    .examples(
      'backup kith-2027-01-15.backup',
      'DATABASE_URL=postgresql://… backup kith.backup',
      'backup kith.backup.age --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p',
      'backup - | ssh backups "cat > kith.backup"',
      'backup verify kith-2027-01-15.backup',
    )
    .argument('<file>', 'The file to write; - writes to standard output. It holds personal data.')
    .option(
      '--recipient <age1…>',
      'Encrypt the file for this recipient of age, whose identity restores it (repeatable).',
      { parse: (recipient: string, all: string[]) => [...all, recipient], default: [] },
    )
    .option('--force', 'Replace an existing file.')
    .option('--quiet', 'Show no progress.')
    .action((file, options) => run(environment, file, options))
  backup.command.enablePositionalOptions()
  addVerify(backup)
  return backup
}

async function run(environment: NodeJS.ProcessEnv, file: string, options: BackupOptions): Promise<Result> {
  if (file === '-') refuseOutput(options)
  const config = loadConfig(environment)
  if (config.databaseUrl === undefined && !(await hasData(config)))
    throw new Error(`There is nothing to back up: ${config.dataDir} holds no data. Set KITH_DATA_DIR or DATABASE_URL.`)
  const startedMs = performance.now()
  const { header, rows, tables, bytes, unrecorded } =
    file === '-'
      ? await writeOutput(config, options)
      : await writeFile(config, { file, path: pathOf(environment, file) }, options)
  const seconds = (performance.now() - startedMs) / 1_000
  const summary = `${formatCount(rows)} rows of ${tables} tables in ${formatDuration(seconds)}, ${formatMegabytes(bytes)}: ${file === '-' ? 'standard output' : file}`
  const { at, kith, migrations, signed_by = null } = header
  const signature =
    signed_by === null
      ? 'The backup is not signed: the database has no key of the ledgers that opens.'
      : `Signed by ${signed_by}`
  const encrypted = options.recipient.length > 0
  const notes = [encrypted ? undefined : besideKey(config, environment, file), unrecorded]
  return {
    value: { file, bytes, rows, tables, at, kith, migration: migrations.at(-1), signed_by, encrypted },
    messages: [summary, signature, ...notes.filter(note => note !== undefined)],
  }
}

/** Returns a warning if the file is in the folder of the master key. */
function besideKey(config: Config, environment: NodeJS.ProcessEnv, file: string): string | undefined {
  const keyFile = keyFilePath(config)
  if (file === '-' || keyFile === undefined || dirname(resolve(pathOf(environment, file))) !== dirname(keyFile)) return
  return `The backup lies beside the master key, ${keyFile}, which opens its keys. Move it to another machine, or use --recipient.`
}

function refuseOutput({ json }: BackupOptions) {
  if (process.stdout.isTTY)
    throw new UsageError('Standard output is a terminal, and a backup is not text. Redirect it to a file or a pipe.')
  if (json) throw new UsageError('With -, standard output has the backup. Leave out --json.')
}

/** Writes the backup to standard output, which stays open. */
async function writeOutput(config: Config, options: BackupOptions): Promise<Published> {
  let bytes = 0
  // The default listener ends the command without a message. The stream below reports the error.
  process.stdout.removeAllListeners('error').on('error', () => {})
  const open = () =>
    new Writable({
      write(piece: Buffer, _, done) {
        bytes += piece.length
        process.stdout.write(piece, done)
      },
    })
  try {
    return await takeSnapshot(config, { open, publish: async () => bytes }, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE')
      throw new Error('The program that reads the backup has ended (EPIPE). The backup that it received is incomplete.')
    throw describeWriteError(error as NodeJS.ErrnoException, 'Standard output')
  }
}

/** `file` is the name as it was typed, for messages; `path` is where the file is. */
type BackupFile = { file: string; path: string }

/** Writes `<file>.partial`, and renames it once it is complete and synced. An incomplete backup never has the final name. */
async function writeFile(config: Config, { file, path }: BackupFile, options: BackupOptions) {
  const found = await orMissing(stat(resolve(path)))
  if (found?.isDirectory())
    throw new UsageError(`Give the name of a file: ${JSON.stringify(file)} is ${file === '' ? 'empty' : 'a folder'}.`)
  const partial = `${path}.partial`
  if (options.force) await rm(partial, { force: true })
  else {
    if (found) throw new Error(`${file} exists already. Use --force to replace it.`)
    if (await fileExists(partial))
      throw new Error(`${file}.partial exists: another backup is running or was killed. Use --force to remove it.`)
  }
  // Mode 600, because the file holds personal data and the private keys.
  const open = () => createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true })
  const publish = async () => {
    const { size } = await stat(partial)
    await rename(partial, path)
    await syncFolder(dirname(path))
    return size
  }
  try {
    return await takeSnapshot(config, { open, publish }, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(partial, { force: true })
    throw describeWriteError(error as NodeJS.ErrnoException, file)
  }
}

/** The destination of a backup. `publish` moves the complete backup into place, and returns its size in bytes. */
type Target = { open(): Writable; publish(): Promise<number> }

/** Wraps the target so that it gets encrypted bytes, if there are recipients. */
async function encrypting({ open, publish }: Target, { recipient }: BackupOptions): Promise<Target> {
  if (recipient.length === 0) return { open, publish }
  const encryption = await encryptFor(recipient)
  return {
    open: () => encryption.open(open()),
    publish: () => encryption.written().then(publish),
  }
}

/** A complete backup. `unrecorded` says why the database has no record of it. */
type Published = Taken & { bytes: number; unrecorded: string | undefined }

async function takeSnapshot(config: Config, target: Target, options: BackupOptions): Promise<Published> {
  const { open: openTarget, publish } = await encrypting(target, options)
  const masterKeys = openMasterKeys(config)
  const progress: Progress = { rows: 0, fraction: 0 }
  const abortController = new AbortController()
  const interrupt = handleInterrupt(() => abortController.abort(new Error('Stopped. No backup was written.')))
  const readProgress = () => ({ count: progress.rows, fraction: progress.fraction })
  const progressLine = startProgress('rows', readProgress, options)
  try {
    return await withServer(config, url =>
      withConnection(url, 'kith backup', async client => {
        const taken = await untilAborted(client, abortController.signal, () =>
          takeBackup(
            client,
            { version, keyName: config.ledgerOrigin, masterKeys, openTarget, signal: abortController.signal },
            progress,
          ),
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

/** Stores the time of the backup. A standby and a read-only role refuse the write. */
const record = (client: pg.Client, at: string): Promise<string | undefined> =>
  client.query(recordBackupSql.text, [at]).then(
    () => undefined,
    (error: Error) =>
      `The database does not store the time of this backup (${error.message}), so /metrics and kith doctor do not know of it.`,
  )

function describeWriteError(error: NodeJS.ErrnoException, file: string): Error {
  if (isDiskFull(error))
    return new Error(`${file} cannot be written: the disk has no room (${error.code}). No backup was written.`)
  if (error.syscall === 'open') return new Error(`${file} cannot be written: ${error.message}`)
  return error
}
