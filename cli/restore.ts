import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openDatabase } from '../src/db/db.ts'
import type { MasterKeys } from '../src/db/master-keys.ts'
import { migrate } from '../src/db/migrate.ts'
import { keyFilePath, openMasterKeys } from '../src/keys-at-rest/key-file.ts'
import { findLostKey } from '../src/keys-at-rest/keys-at-rest.ts'
import { type Config, loadConfig } from '../src/process/config.ts'
import { withConnection } from './backup/catalog.ts'
import { type Backup, verifyBackup } from './backup/container.ts'
import { decryptFile, isEncrypted, readIdentities } from './backup/encryption.ts'
import { type Loaded, loadBackup, refuseOtherVersions, renewLogIds } from './backup/load.ts'
import { describeSignature, requireKey } from './backup/signature.ts'
import { type JsonOption, type Result, UsageError } from './command.ts'
import { isDiskFull, pathOf } from './files.ts'
import { newCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { formatCount, formatDuration, withProgress } from './progress.ts'
import { withServer } from './session.ts'
import { handleInterrupt } from './signal-handling.ts'
import { visible } from './terminal.ts'

const statementTimeoutMs = 30_000

export function restoreCommand(environment: NodeJS.ProcessEnv) {
  const restore = newCommand(
    environment,
    'restore',
    'Loads a backup into an empty database or data folder, or restores an archive (--from, --at) into a new data folder, completely ' +
      'or not at all.',
  ).examples(
    'KITH_DATA_DIR=/var/lib/kith-restored restore kith-2027-01-15.backup',
    'DATABASE_URL=postgresql://… restore kith.backup',
    'DATABASE_URL=postgresql://… restore - < kith.backup',
    'KITH_DATA_DIR=/var/lib/kith-restored restore kith.backup.age --identity backup-key.txt',
    'KITH_DATA_DIR=/var/lib/kith-restored restore --at 2027-01-15T09:59:00Z --from /mnt/archive',
  )
  return restore
    .argument('[file]', 'A file written by kith backup; - reads standard input.')
    .with(restoreOptions)
    .action(async (file, options) => {
      if (options.at === undefined && options.from === undefined) {
        if (file === undefined)
          return restore.command.error('error: give the file of a backup, or --from with an archive')
        return resultOf(await restoreFile(environment, file, options), options)
      }
      if (file !== undefined || options.key !== undefined || options.identity !== undefined)
        throw new UsageError('--at and --from restore an archive. Leave them out to restore a backup.')
      return restoreFromArchive(environment, options)
    })
}

const restoreOptions = (command: PlainCommand) =>
  command
    .option(
      '--key <key>',
      'The key of the ledger that must have signed the backup, name+hash+base64, from a source that you trust.',
    )
    .option(
      '--identity <file>',
      'The file with the identity of age that opens an encrypted backup, as age-keygen writes it.',
    )
    .option('--at <time>', 'Restore the archive up to this moment, such as 2027-01-15T09:59:00Z. Default: everything.')
    .option('--from <archive>', 'The archive, as KITH_ARCHIVE names it. Default: KITH_ARCHIVE.')
    .option(
      '--keep-log-id',
      'Keep the numbering of the change logs: for a move, where the original was stopped before the backup and never runs again.',
    )
    .option('--quiet', 'Show no progress.')

export type RestoreOptions = JsonOption & OptionsOf<typeof restoreOptions>

async function restoreFromArchive(
  environment: NodeJS.ProcessEnv,
  { at, from, ...options }: RestoreOptions,
): Promise<Result> {
  const config = loadConfig(from === undefined ? environment : { ...environment, KITH_ARCHIVE: from })
  if (!config.archive) throw new UsageError('Give --from with the archive, or set KITH_ARCHIVE.')
  const moment = at === undefined ? undefined : parseMoment(at)
  const masterKeys = openMasterKeys(config)
  const { restoreArchive } = await import('../src/db/archive/recover.ts')
  const { openStore } = await import('../src/db/archive/store.ts')
  const { base, last_transaction_at } = await restoreArchive(
    openStore(config.archive.address),
    resolve(config.dataDir),
    moment,
  )
  const { ran, lostKey } = await withServer(config, async url => {
    const ran = await migrate(url)
    if (!options.keepLogId) await withConnection(url, 'kith restore', renewLogIds)
    return { ran, lostKey: await findMissingKey(url, masterKeys) }
  })
  const messages = [
    `the state of ${moment?.toISOString() ?? 'the end of the archive'}; the last transaction is of ${last_transaction_at ?? 'an earlier copy'}`,
    ...notesOf(config, { ran, lostKey, keepsLogId: options.keepLogId === true }),
  ]
  return { value: { base, at: moment ?? null, last_transaction_at, ran }, messages }
}

/** A moment with a time zone. Throws a UsageError for another text. */
function parseMoment(text: string): Date {
  const moment = new Date(text)
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(moment.getTime()))
    return moment
  throw new UsageError(
    `${JSON.stringify(text)} is not a moment. Give one such as 2027-01-15T09:59:00Z, with its time zone.`,
  )
}

/**
 * Loads a backup into the database or data folder of this environment. Throws an Error with one sentence if it restored
 * nothing.
 */
export async function restoreFile(
  environment: NodeJS.ProcessEnv,
  file: string,
  options: RestoreOptions,
): Promise<Restored> {
  const config = loadConfig(environment)
  const masterKeys = openMasterKeys(config)
  const startedMs = performance.now()
  const abortController = new AbortController()
  const interrupt = handleInterrupt(() => abortController.abort(new Error('Stopped. Nothing was restored.')))
  try {
    const { signal } = abortController
    return await withFile(environment, file, { options, signal }, async found => {
      // The whole file is verified before the first row is stored.
      const backup = await verifyBackup(found.file, found.path, options, signal)
      if (options.key !== undefined) await requireKey(backup.header.signed_by, options.key)
      await refuseOtherVersions(backup.header)
      const { loaded, lostKey } = await withServer(config, async url => ({
        loaded: await load(url, backup, { options, signal }),
        lostKey: await findMissingKey(url, masterKeys),
      }))
      const notes = notesOf(config, { ran: loaded.migrations, lostKey, keepsLogId: options.keepLogId === true })
      return { file, backup, loaded, notes, seconds: (performance.now() - startedMs) / 1_000 }
    })
  } catch (error) {
    // A read of the file that is aborted throws an AbortError. Work on the database throws the signal's reason itself.
    throw (error as Error).name === 'AbortError' ? abortController.signal.reason : error
  } finally {
    interrupt.end()
  }
}

type Outcome = { ran: string[]; lostKey: string | undefined; keepsLogId: boolean }

/** The notes for the operator about the restored data. */
function notesOf(config: Config, { ran, lostKey, keepsLogId }: Outcome): string[] {
  const keyFile = keyFilePath(config) ?? 'the file of KITH_MASTER_KEY_FILE'
  return [
    ...(keepsLogId
      ? []
      : ['The change logs have a new log_id: clients that follow them begin again, by docs/changes.md.']),
    ...ran.map(name => `Ran migration ${name}.`),
    ...(lostKey === undefined
      ? []
      : [
          `The restored keys are wrapped by the master key ${lostKey}. Put it into ${keyFile} before the start, or run ` +
            'kith keys forget if it is lost.',
        ]),
  ]
}

/** The options and the signal that the steps of a restore share. */
type Work = { options: RestoreOptions; signal: AbortSignal }

/** `file` is the name for messages, `path` the file that is read. */
type BackupFile = { file: string; path: string }

/**
 * Runs `work` with the plain file of a backup. The restore reads the file twice, first to verify it. So standard input
 * and an encrypted backup are stored in a temporary file, which only this user may read, and which is deleted
 * afterwards.
 */
async function withFile<T>(
  environment: NodeJS.ProcessEnv,
  file: string,
  { options, signal }: Work,
  work: (file: BackupFile) => Promise<T>,
): Promise<T> {
  const given = options.identity === undefined ? [] : await readIdentities(pathOf(environment, options.identity))
  const named = { file, path: pathOf(environment, file) }
  if (file !== '-' && !(await isEncrypted(named.path))) return work(named)
  if (file === '-' && process.stdin.isTTY)
    throw new UsageError('Standard input is a terminal. Give a file, or the output of kith backup -.')
  const folder = await mkdtemp(join(tmpdir(), 'kith-restore-'))
  try {
    const store = (name: string, noun: string, fill: (target: WriteStream) => Promise<void>) =>
      storeFile(join(folder, name), { noun, options }, fill)
    const found =
      file === '-'
        ? {
            file: 'Standard input',
            path: await store('input', 'MB received', target => pipeline(process.stdin, target, { signal })),
          }
        : named
    if (!(await isEncrypted(found.path))) return await work(found)
    if (given.length === 0)
      throw new UsageError(`${found.file} is encrypted. Give --identity, the file with the identity that opens it.`)
    const decrypt = (target: WriteStream) => decryptFile(found, given, { target, signal })
    return await work({ file: found.file, path: await store('backup', 'MB decrypted', decrypt) })
  } finally {
    await rm(folder, { recursive: true })
  }
}

type Storing = { noun: string; options: RestoreOptions }

/** Fills a new file and returns its path. */
async function storeFile(
  path: string,
  { noun, options }: Storing,
  fill: (target: WriteStream) => Promise<void>,
): Promise<string> {
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  const readProgress = () => ({ count: Math.round(target.bytesWritten / 1e6), fraction: null })
  await withProgress(noun, readProgress, options, () => fill(target)).catch(error => {
    if (!isDiskFull(error)) throw error
    throw new Error(`${tmpdir()} has no room for the backup. Set TMPDIR to a folder that has. Nothing was restored.`)
  })
  return path
}

async function load(url: string, backup: Backup, { options, signal }: Work): Promise<Loaded> {
  const progress = { bytes: 0, rows: 0 }
  const readProgress = () => ({ count: progress.rows, fraction: Math.min(1, progress.bytes / backup.bytes) })
  const keepsLogId = options.keepLogId === true
  return withProgress('rows', readProgress, options, () => loadBackup({ url, backup, keepsLogId, signal, progress }))
}

/** Returns the master key that the restored keys need, if this environment does not have it. */
async function findMissingKey(url: string, masterKeys: MasterKeys): Promise<string | undefined> {
  const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith restore', masterKeys })
  return findLostKey(db).finally(() => db.close())
}

/** The result of a restore. `notes` tell the operator what to do next. */
export type Restored = { file: string; backup: Backup; loaded: Loaded; notes: string[]; seconds: number }

function resultOf({ file, backup: { header }, loaded, notes, seconds }: Restored, options: RestoreOptions): Result {
  const { rows, tables, leftOut, migrations } = loaded
  const { at, kith, signed_by } = header
  const messages = [
    `${formatCount(rows)} rows of ${tables} tables in ${formatDuration(seconds)}: the state of ${at}`,
    describeSignature(signed_by, options.key !== undefined),
    ...(leftOut.length > 0 ? [`Skipped tables that kith does not have: ${visible(leftOut.join(', '))}.`] : []),
    ...notes,
  ]
  const value = { file, rows, tables, at, kith, left_out: leftOut, ran: migrations, signed_by: signed_by ?? null }
  return { value, messages }
}
