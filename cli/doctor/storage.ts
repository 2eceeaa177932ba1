import { join, resolve } from 'node:path'
import { type Database, openDatabase } from '../../src/db/db.ts'
import type { Config } from '../../src/process/config.ts'
import { fileExists } from '../files.ts'
import { withServer } from '../session.ts'

const statementTimeoutMs = 10_000

/**
 * Runs `work` on the database, and neither migrates it nor creates anything in it. A stopped embedded server is started
 * until `work` ends. Returns `undefined` if there is no database yet. Throws an Error whose message is one sentence.
 */
export async function withStorage<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T | undefined> {
  if (config.databaseUrl === undefined && !(await hasData(config))) return undefined
  return withServer(config, async url => {
    const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith doctor' })
    return work(db).finally(db.close)
  })
}

/** Whether the data folder holds an embedded PostgreSQL, running or stopped. */
export const hasData = ({ dataDir }: Config): Promise<boolean> => fileExists(join(resolve(dataDir), 'postgresql'))
