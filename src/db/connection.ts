import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import type { Release } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import { isReadOnly, OutcomeUnknown } from './pg-errors.ts'
import { type Liveness, ServerSilent } from './servers/liveness.ts'
import type { Servers } from './servers/servers.ts'

type Work<T> = (client: pg.PoolClient) => Promise<T>

/**
 * The source of connections. `takeShare` limits a request to the share of its organization (connection-shares.ts); it
 * is absent for kith's own work.
 */
export type Source = {
  pool: pg.Pool
  servers: Servers
  liveness: Liveness
  takeShare?: (signal: Signal | undefined) => Release | Promise<Release>
}

/**
 * Runs `work` on a connection of the pool, after waiting for the share. When the signal aborts, the running statement
 * is cancelled on the server, and the promise settles only after that. When the server falls silent, the connection is
 * closed. The share is held until the connection is free again.
 */
export async function withClient<T>(
  { pool, servers, liveness, takeShare }: Source,
  signal: Signal | undefined,
  work: Work<T>,
): Promise<T> {
  const taking = takeShare?.(signal)
  const release = taking instanceof Promise ? await taking : taking
  let client: pg.PoolClient
  try {
    client = await acquireCurrent({ pool, servers, liveness }, signal)
  } catch (error) {
    release?.()
    throw error
  }
  const untrack = liveness.enter({ giveUp: () => destroySocket(client), isOutdated: () => !servers.isCurrent(client) })
  let settled = false
  let cancelling: Promise<void> | undefined
  let silenceTimer: NodeJS.Timeout | undefined
  let isSilent = false
  const cancel = () => {
    cancelling = cancelStatements(client, () => settled)
    // A silent server answers neither the statement nor its cancellation. The connection is closed, and a cancel
    // request that the server answers later, or statement_timeout, ends the statement there.
    silenceTimer = globalThis.setTimeout(() => {
      isSilent = true
      destroySocket(client)
    }, cancelPatienceMs)
  }
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    return await work(client)
  } catch (error) {
    if (isReadOnly(error)) servers.retire(client)
    // If the connection is lost after COMMIT was sent, the outcome is unknown. OutcomeUnknown then takes precedence
    // over the signal's reason.
    throw signal?.aborted && !(error instanceof OutcomeUnknown) ? signal.reason : error
  } finally {
    untrack()
    settled = true
    clearTimeout(silenceTimer)
    signal?.removeEventListener('abort', cancel)
    // A cancel request names a process, not a statement. The connection is reused only after the request was answered.
    const isLate = isSilent || (cancelling !== undefined && !(await settlesInTime(cancelling)))
    client.release(isLate || !servers.isCurrent(client))
    release?.()
  }
}

function destroySocket(client: pg.PoolClient) {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** Whether the cancel requests ended in time. A connection is not reused while a cancel request may still reach it. */
async function settlesInTime(cancelling: Promise<void>): Promise<boolean> {
  return Promise.race([cancelling.then(() => true), setTimeout(cancelPatienceMs, false, { ref: false })])
}

/** Waits for a connection to the current server. Closes connections to earlier servers. */
async function acquireCurrent({ pool, servers, liveness }: Source, signal: Signal | undefined): Promise<pg.PoolClient> {
  for (;;) {
    const client = await acquire(pool, liveness, signal)
    if (servers.isCurrent(client)) return client
    client.release(true)
  }
}

/**
 * Waits for a free connection until the signal aborts or the server falls silent. A connection that arrives later
 * returns to the pool.
 */
async function acquire(pool: pg.Pool, liveness: Liveness, signal: Signal | undefined): Promise<pg.PoolClient> {
  signal?.throwIfAborted()
  liveness.throwIfSilent()
  const connecting = pool.connect()
  const abandoned = Promise.withResolvers<never>()
  const untrack = liveness.enter({ giveUp: () => abandoned.reject(new ServerSilent('no connection became free')) })
  const abort = () => abandoned.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([connecting, abandoned.promise])
  } catch (error) {
    connecting.then(
      client => client.release(),
      () => {},
    )
    throw error
  } finally {
    untrack()
    signal?.removeEventListener('abort', abort)
  }
}

// A cancel request that arrives between two statements has no effect. The next request follows after this interval.
const cancelIntervalMs = 50
/** A busy server may answer after its client has given up. The statement still runs then. */
const maxUnanswered = 10
/** After this time without an answer to a cancel request, the server counts as silent. */
const cancelPatienceMs = 1_000

type Connected = {
  host: string
  port: number
  processID: number
  secretKey: number
  connectionParameters: { ssl?: unknown; sslnegotiation?: unknown }
}

/**
 * Cancels the statements of the client's server process, repeatedly, until the client's work has settled and the server
 * has answered. Each attempt sends a CancelRequest message on its own socket. The message needs no login, so a server
 * without free connections accepts it too.
 */
async function cancelStatements(client: pg.PoolClient, settled: () => boolean): Promise<void> {
  for (let unanswered = 0; unanswered < maxUnanswered; ) {
    const result = await requestCancel(client as unknown as Connected)
    // The server is unreachable: statement_timeout ends the statement there, and the broken connection ends it here.
    if (result === 'unreachable' || (result === 'answered' && settled())) return
    unanswered = result === 'answered' ? 0 : unanswered + 1
    await setTimeout(cancelIntervalMs)
    if (result === 'answered' && settled()) return
  }
}

type CancelConnection = pg.Connection & {
  connect(port: number | string, host?: string): void
  cancel(processId: number, secretKey: number): void
}

/** The server answers by closing the connection. */
type CancelResult = 'answered' | 'silent' | 'unreachable'

function requestCancel({ host, port, processID, secretKey, connectionParameters }: Connected): Promise<CancelResult> {
  return new Promise(resolve => {
    const { ssl, sslnegotiation: sslNegotiation } = connectionParameters
    const connection = new pg.Connection({ ssl, sslNegotiation } as never) as CancelConnection
    let result: CancelResult = 'unreachable'
    const timer = globalThis.setTimeout(() => {
      result = 'silent'
      connection.stream.destroy()
    }, cancelPatienceMs)
    connection.once(ssl ? 'sslconnect' : 'connect', () => {
      result = 'answered'
      connection.cancel(processID, secretKey)
    })
    connection.on('error', () => {})
    connection.once('end', () => {
      clearTimeout(timer)
      resolve(result)
    })
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
    else connection.connect(port, host)
  })
}
