import type pg from 'pg'
import { OutcomeUnknown } from './pg-errors.ts'

// Citus plans a statement for its shard only with the values of its parameters. A `set local` must reach the workers of
// the transaction, because they wait for the locks.
const adapt = `select set_config('plan_cache_mode', 'auto', false), set_config('citus.propagate_set_commands', 'local', false)
   from pg_extension where extname = 'citus'`

/**
 * Sends the settings that a connection to Citus needs, as its first statement. Other servers get no settings. If this
 * fails, the connection stays as it is, and its next statement reports the error.
 */
export function adaptToCitus(client: pg.ClientBase): void {
  client.query(adapt).catch(() => {})
}

/** An error if Citus does not know whether a worker has committed. Citus gives it no specific code. */
export const unknownOutcomeOfShard = (error: unknown): OutcomeUnknown | undefined =>
  error instanceof Error && error.message.startsWith('could not commit transaction for shard')
    ? new OutcomeUnknown('a worker did not confirm COMMIT', { cause: error })
    : undefined
