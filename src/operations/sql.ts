import { statement } from '../db/db.ts'

export const readLastBackupSql = statement(
  'read_last_backup',
  'select extract(epoch from max(b.at))::float8 as seconds from backups b',
)

/** $1: the time of the snapshot. */
export const recordBackupSql = statement(
  'record_backup',
  'insert into backups (at) values ($1) on conflict (at) do nothing',
)
