import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../src/config.ts'
import { type Database, openDatabase } from '../../src/db/db.ts'
import { startEmbedded } from '../../src/db/embedded.ts'
import { probe } from '../../src/db/probe.ts'

const statement_timeout_ms = 10_000

/**
 * Runs `work` on the database as it stands: nothing is migrated or made. An embedded server that does not run is started
 * for the while; `undefined` where there are no data to start one on. Throws an Error of one sentence.
 */
export async function withStorage<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T | undefined> {
  const { database_url } = config
  if (database_url === undefined && !(await hasData(config))) return undefined
  if (database_url !== undefined) await probe(database_url)
  const storage =
    database_url === undefined
      ? await startEmbedded({ data_dir: config.data_dir, purpose: 'command', log: () => {} })
      : { url: database_url, stop: async () => {} }
  const db = openDatabase(storage.url, { connections: 1, statement_timeout_ms, application_name: 'kith doctor' })
  try {
    return await work(db)
  } finally {
    await db.close()
    await storage.stop()
  }
}

const hasData = ({ data_dir }: Config): Promise<boolean> =>
  lstat(join(resolve(data_dir), 'postgresql')).then(
    () => true,
    () => false,
  )
