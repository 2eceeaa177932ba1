import { statement } from '../db.ts'

/** $1: organizations. The number of the newest change of each that this server shows. */
export const readSequencesSql = statement(
  'read_sequences',
  'select organization_id, sequence from change_heads where organization_id = any($1::integer[])',
)

/**
 * The state of a server that should be a standby. `received` and `replayed` are positions in the write-ahead log, in
 * bytes. Both are null on a primary, and `received` also on a standby that has not streamed since its start.
 * `replayed_age` is the age in seconds of the newest replayed transaction. A role without pg_read_all_stats sees only
 * the pid of the receiver.
 */
export const readStandbySql = statement(
  'read_standby',
  `select pg_is_in_recovery() as is_standby,
     (pg_last_wal_receive_lsn() - '0/0'::pg_lsn)::float8 as received,
     (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::float8 as replayed,
     exists (select from pg_stat_wal_receiver w where w.pid is not null) as is_receiving,
     greatest(0, extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()))::float8 as replayed_age,
     (select count(*)::integer from public.migrations) as migrations`,
)
