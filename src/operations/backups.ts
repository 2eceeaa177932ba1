import type { Database } from '../db/db.ts'
import { readLastBackupSql } from './sql.ts'

/** The time of the last snapshot that `kith backup` has written, as Unix time in seconds. Null if there is none. */
export async function readLastBackup(db: Database): Promise<number | null> {
  const [row] = await db.query<{ seconds: number | null }>(readLastBackupSql, [])
  return row!.seconds
}
