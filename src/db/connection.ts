import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import type { Signal } from '../signal.ts'
import { cancelPatienceMs, cancelStatements } from './cancel.ts'
import { type Liveness, ServerSilent } from './liveness.ts'
import { OutcomeUnknown } from './pg-errors.ts'
import type { Place } from './shares.ts'

type Work<T> = (client: pg.PoolClient) => Promise<T>

/** Where a connection comes from; of an organization's requests, the place that they need besides. */
export type Source = { pool: pg.Pool; pulse: Liveness; place?: Place | undefined }

/**
 * Runs `work` on a connection of the pool, after waiting for a place. When the signal aborts, the running statement is cancelled on
 * the server, and the promise settles only after that; when the server falls silent, the connection is given up. The place is held
 * until the connection is free again.
 */
export async function withClient<T>(
  { pool, pulse, place }: Source,
  signal: Signal | undefined,
  work: Work<T>,
): Promise<T> {
  const entering = place?.enter(signal)
  if (entering) await entering
  let client: pg.PoolClient
  try {
    client = await acquire(pool, pulse, signal)
  } catch (error) {
    place?.leave()
    throw error
  }
  const leave = pulse.enter({ giveUp: () => destroySocket(client) })
  let settled = false
  let cancelled: Promise<void> | undefined
  let silent: NodeJS.Timeout | undefined
  const cancel = () => {
    cancelled = cancelStatements(client, () => settled)
    // A server that is silent answers neither the statement nor its cancellation: the connection is given up, and
    // statement_timeout ends the statement there.
    silent = globalThis.setTimeout(() => destroySocket(client), cancelPatienceMs)
  }
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    return await work(client)
  } catch (error) {
    // Whether a COMMIT that was sent came through, nobody can say once its connection is lost: then the signal explains nothing.
    throw signal?.aborted && !(error instanceof OutcomeUnknown) ? signal.reason : error
  } finally {
    leave()
    settled = true
    clearTimeout(silent)
    signal?.removeEventListener('abort', cancel)
    // The cancel request names a process, not a statement: only once it is answered may another use the connection.
    client.release(cancelled !== undefined && !(await settlesInTime(cancelled)))
    place?.leave()
  }
}

function destroySocket(client: pg.PoolClient) {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** Whether the cancel requests came to an end; a connection that they may still reach is not used again. */
async function settlesInTime(cancelled: Promise<void>): Promise<boolean> {
  return Promise.race([cancelled.then(() => true), setTimeout(cancelPatienceMs, false, { ref: false })])
}

/** Waits for a free connection until the signal aborts or the server falls silent; one that comes later goes back. */
async function acquire(pool: pg.Pool, pulse: Liveness, signal: Signal | undefined): Promise<pg.PoolClient> {
  signal?.throwIfAborted()
  pulse.throwIfSilent()
  const connecting = pool.connect()
  const givenUp = Promise.withResolvers<never>()
  const leave = pulse.enter({ giveUp: () => givenUp.reject(new ServerSilent('no connection comes')) })
  const abort = () => givenUp.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([connecting, givenUp.promise])
  } catch (error) {
    connecting.then(
      client => client.release(),
      () => {},
    )
    throw error
  } finally {
    leave()
    signal?.removeEventListener('abort', abort)
  }
}
