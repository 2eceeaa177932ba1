import { createHash, sign } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { Signer } from '../../cli/backup/signature.ts'
import { type CommandResult, runInProcess, startCommand } from './command.ts'
import { createTestDatabase } from './database.ts'
import { query } from './embedded-service.ts'
import { endProcesses } from './process.ts'
import { type Send, type Service, startService } from './service.ts'

/**
 * The fixture of the tests of `kith backup` and `kith restore`. Its databases and services are removed after each test.
 */
export type BackupFixture = {
  folder: string
  /** The name of a file that does not exist yet. */
  newFile(): string
  pathTo(file: string): string
  start(words: string[], environment: Record<string, string>): ReturnType<typeof startCommand>
  /** Runs a command on this database. */
  kith(words: string[], url: string): Promise<CommandResult>
  newDatabase(): Promise<string>
  /** A database without tables. */
  emptyDatabase(): Promise<string>
  serveOn(url: string): Promise<Service>
}

/** Creates the fixture, and registers its setup and cleanup with the test file. */
export function useBackupFixture(): BackupFixture {
  let files = 0
  const cleanups: (() => Promise<unknown>)[] = []
  const newDatabase = async (options?: { tables: boolean }) => {
    const { url, drop } = await createTestDatabase(options)
    cleanups.push(drop)
    return url
  }
  const fixture: BackupFixture = {
    folder: '',
    newFile: () => `${++files}.backup`,
    pathTo: file => join(fixture.folder, file),
    start: (words, environment) => startCommand(words, environment, fixture.folder),
    kith: (words, url) => runInProcess(words, { DATABASE_URL: url }, fixture.folder),
    newDatabase: () => newDatabase(),
    emptyDatabase: () => newDatabase({ tables: false }),
    async serveOn(url) {
      const service = await startService({}, url)
      cleanups.push(service.stop)
      return service
    },
  }
  beforeAll(async () => {
    fixture.folder = await mkdtemp(join(tmpdir(), 'kith-backup-'))
  })
  afterEach(async () => {
    await endProcesses()
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })
  afterAll(() => rm(fixture.folder, { recursive: true }))
  return fixture
}

/** Creates a person in turn 0, and changes its answers and links in later turns. Every write must succeed. */
export async function writePerson(send: Send, external_id: string, turn: number) {
  const body = {
    first_name: `turn ${turn}`,
    email_consent: turn % 2 === 0,
    attribute_values: { turn, referrer: `hub_${turn % 3}`, bought: ['o1', `o_${external_id}_${turn % 5}`] },
  }
  const { status } =
    turn === 0
      ? await send('POST', '/v1/people', { external_id, ...body }, { 'Idempotency-Key': external_id })
      : await send('PATCH', `/v1/people/${external_id}`, body)
  expect(status).toBe(turn === 0 ? 201 : 200)
}

/** Writes with four concurrent writers while `work` runs. It starts after the first writes of each. */
export async function underWriters<T>(send: Send, work: () => Promise<T>): Promise<T> {
  let [writing, waiting] = [true, 4]
  const started = Promise.withResolvers<void>()
  const writers = ['a', 'b', 'c', 'd'].map(async name => {
    for (let turn = 0; writing; turn++) {
      await writePerson(send, `writer_${name}`, turn)
      if (turn === 5 && --waiting === 0) started.resolve()
    }
  })
  await Promise.race([started.promise, ...writers])
  const result = await work()
  writing = false
  await Promise.all(writers)
  return result
}

/** The parts of a backup file. */
type Parts = { header: Record<string, unknown>; body: Buffer }

/**
 * Changes the parts of a backup file and computes its SHA-256 anew, as an attacker may. With a key, the result is signed by it, and
 * without one it has the format that is not signed.
 */
export function forgeBackup(file: Buffer, change: (parts: Parts) => Partial<Parts>, signer?: Signer): Buffer {
  const start = file.indexOf(10) + 1
  const header = JSON.parse(file.toString('utf8', 0, start))
  const parts = { header, body: file.subarray(start, file.length - (header.version === 2 ? 65 + 129 : 65)) }
  const { header: changed, body } = { ...parts, ...change(parts) }
  const { format, version: _, signed_by: __, ...rest } = changed
  const version = signer ? { version: 2, signed_by: signer.verifierKey } : { version: 1 }
  const signed = Buffer.concat([Buffer.from(`${JSON.stringify({ format, ...version, ...rest })}\n`), body])
  const sha256 = createHash('sha256').update(signed).digest('hex')
  const signature = signer
    ? `${sign(null, Buffer.from(`kith backup\n${sha256}\n`), signer.privateKey).toString('hex')}\n`
    : ''
  return Buffer.concat([signed, Buffer.from(`${sha256}\n${signature}`)])
}

/**
 * Reads every row of every persistent table but `migrations`, by table. It finds the tables in the catalog,
 * independently of kith. The table `backups` is shown empty: no backup has the row that says that it was made.
 */
export async function contentsOf(url: string): Promise<Record<string, unknown[]>> {
  const tables = await query(
    url,
    `select relname as name from pg_class where relkind = 'r' and relpersistence = 'p' and relname <> 'migrations'
       and relnamespace = 'public'::regnamespace order by relname`,
  )
  const contents: Record<string, unknown[]> = {}
  for (const { name } of tables) {
    const text = `select to_jsonb(t) as row from ${pg.escapeIdentifier(name as string)} t order by to_jsonb(t)::text collate "C"`
    contents[name as string] = name === 'backups' ? [] : (await query(url, text)).map(({ row }) => row)
  }
  return contents
}
