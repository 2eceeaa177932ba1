import { type Database, statement } from '../db.ts'
import { isDiskFull } from '../pg-errors.ts'

/** Whether a responding database accepts writes. */
export type Readiness = 'ready' | 'read_only' | 'disk_full'

// PostgreSQL extends a table by at most half a megabyte. The statement writes as much to a temporary file beside the
// tables, which PostgreSQL deletes at once. So it fails while the disk is full, even if no other statement writes, and
// succeeds once there is room. It takes 1 ms.
const readReadinessSql = statement(
  'read_readiness',
  `with settings as materialized (
     select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true), 64 as pages
   )
   select current_setting('transaction_read_only')::boolean as read_only, count(*)::integer as pages
     from settings, string_to_table(repeat(repeat('x', 8191) || ' ', settings.pages), ' ')`,
)

/** Reads whether the database accepts writes. Throws if it does not answer. */
export async function readReadiness(db: Database, signal: AbortSignal): Promise<Readiness> {
  try {
    const [row] = await db.query<{ read_only: boolean; pages: number }>(readReadinessSql, [], signal)
    return row!.read_only ? 'read_only' : 'ready'
  } catch (error) {
    if (isDiskFull(error)) return 'disk_full'
    throw error
  }
}
