import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { startCommand } from './command.ts'
import { createTestDatabase } from './database.ts'
import { query } from './embedded-service.ts'
import { endProcesses } from './process.ts'
import { type Service, startService } from './service.ts'

/** What the tests of `kith backup` and `kith restore` work with; what it made is gone after each test. */
export type BackupGround = {
  folder: string
  /** The name of a file that does not exist yet. */
  newFile(): string
  pathTo(file: string): string
  start(words: string[], environment: Record<string, string>): ReturnType<typeof startCommand>
  /** Runs a command on this database. */
  kith(words: string[], url: string): ReturnType<typeof startCommand>['ended']
  newDatabase(): Promise<string>
  /** A database without tables. */
  emptyDatabase(): Promise<string>
  serveOn(url: string): Promise<Service>
}

export function useBackupGround(): BackupGround {
  let files = 0
  const cleanups: (() => Promise<unknown>)[] = []
  const newDatabase = async (options?: { tables: boolean }) => {
    const { url, drop } = await createTestDatabase(options)
    cleanups.push(drop)
    return url
  }
  const ground: BackupGround = {
    folder: '',
    newFile: () => `${++files}.backup`,
    pathTo: file => join(ground.folder, file),
    start: (words, environment) => startCommand(words, environment, ground.folder),
    kith: (words, url) => ground.start(words, { DATABASE_URL: url }).ended,
    newDatabase: () => newDatabase(),
    emptyDatabase: () => newDatabase({ tables: false }),
    async serveOn(url) {
      const service = await startService({}, url)
      cleanups.push(service.stop)
      return service
    },
  }
  beforeAll(async () => {
    ground.folder = await mkdtemp(join(tmpdir(), 'kith-backup-'))
  })
  afterEach(async () => {
    await endProcesses()
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })
  afterAll(() => rm(ground.folder, { recursive: true }))
  return ground
}

/** Every row of every table that PostgreSQL logs, found in the catalog by a way of the test's own. */
export async function contentsOf(url: string): Promise<Record<string, unknown[]>> {
  const tables = await query(
    url,
    `select relname as name from pg_class where relkind = 'r' and relpersistence = 'p' and relname <> 'migrations'
       and relnamespace = 'public'::regnamespace order by relname`,
  )
  const contents: Record<string, unknown[]> = {}
  for (const { name } of tables) {
    const text = `select to_jsonb(t) as row from ${pg.escapeIdentifier(name as string)} t order by to_jsonb(t)::text collate "C"`
    contents[name as string] = (await query(url, text)).map(({ row }) => row)
  }
  return contents
}
