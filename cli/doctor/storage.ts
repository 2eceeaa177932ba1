import { lstat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Database, openDatabase } from '../../src/db/db.ts'
import { orMissing } from '../../src/db/missing-files.ts'
import type { Config } from '../../src/process/config.ts'
import { withServer } from '../session.ts'

const statementTimeoutMs = 10_000

/**
 * Runs `work` on the database without a migration. A stopped embedded server is started until `work` ends. Returns
 * `undefined` if there is no database yet. Throws an Error whose message is one sentence.
 */
export async function withStorage<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T | undefined> {
  if (config.databaseUrl === undefined && !(await hasData(config))) return undefined
  return withServer(config, async url => {
    const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith doctor' })
    return work(db).finally(db.close)
  })
}

/**
 * Whether the data folder holds an embedded PostgreSQL, running or stopped. A dangling link counts, because a start
 * does not replace it. Throws an Error if this user cannot look into the folder.
 */
export const hasData = async ({ dataDir }: Config): Promise<boolean> => {
  const folder = resolve(dataDir)
  const found = await orMissing(lstat(join(folder, 'postgresql'))).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(
      `The data folder ${folder} cannot be read (${code}). Run the command as the user of the service, or correct KITH_DATA_DIR.`,
    )
  })
  return found !== undefined
}
