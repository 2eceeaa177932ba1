import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../src/config.ts'
import { type Database, openDatabase } from '../../src/db/db.ts'
import { withServer } from '../session.ts'

const statementTimeoutMs = 10_000

/**
 * Runs `work` on the database as it stands: nothing is migrated or made. An embedded server that does not run is started
 * for the while; `undefined` where there are no data to start one on. Throws an Error of one sentence.
 */
export async function withStorage<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T | undefined> {
  if (config.databaseUrl === undefined && !(await hasData(config))) return undefined
  return withServer(config, async url => {
    const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith doctor' })
    return work(db).finally(db.close)
  })
}

/** Whether there is an embedded PostgreSQL in the data folder, running or not. */
export const hasData = ({ dataDir }: Config): Promise<boolean> =>
  lstat(join(resolve(dataDir), 'postgresql')).then(
    () => true,
    () => false,
  )
