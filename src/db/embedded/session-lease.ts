import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster } from './cluster.ts'
import { EmbeddedError, explainFullDisk } from './error.ts'
import { commandLine } from './processes.ts'
import { ensureServer, serverUrl, stopServer } from './server.ts'

export type Purpose = 'serve' | 'command'

/** A lease on the server: a connection that holds the advisory locks of this process while it uses the server. */
export type SessionLease = {
  url: string
  /** Whether the connection to the server is open. */
  up(): boolean
  leave(): Promise<void>
}

type Session = { client: pg.Client; lost: Promise<void>; url: string; socketDir: string }

// Advisory locks in the database `postgres`. The serving process holds `owner` exclusively. All processes that use the
// server share `use`. A process that ends tries to take `use` exclusively. If it succeeds, it is the last one and stops
// the server.
const lock = { class: 0x6b697468, owner: 1, use: 2 }
const retryMs = 100
const patienceMs = 10_000

/**
 * Acquires a lease on the server of a cluster, and starts the server if it does not run. A lease for `serve` owns the
 * data folder, and restarts the server whenever it is lost. Throws {@link EmbeddedError}.
 */
export async function acquireSessionLease(
  cluster: Cluster,
  { purpose, log, signal }: { purpose: Purpose; log: (line: string) => void; signal?: AbortSignal },
): Promise<SessionLease> {
  const leaving = new AbortController()
  let session: Session | undefined = await enter(cluster, purpose, signal ?? leaving.signal)
  const { url, socketDir } = session
  let recovery: Promise<void> | undefined
  const watch = ({ lost }: Session) =>
    lost.then(() => {
      session = undefined
      if (purpose === 'serve' && !leaving.signal.aborted) recovery = recover()
    })
  const recover = async () => {
    log('the connection to the embedded PostgreSQL is lost; restarting the server')
    session = await enterAgain(cluster, socketDir, leaving.signal, log)
    if (!session) return
    log('the embedded PostgreSQL is back')
    watch(session)
  }
  watch(session)
  const leave = async () => {
    leaving.abort()
    await recovery
    const isLast = session ? await isLastUser(session) : undefined
    // If the locks were lost with the server, only the serving process stops it.
    if (isLast ?? purpose === 'serve') await stopServer(cluster)
    else if (isLast === false) log('another kith process still uses the embedded PostgreSQL, and stops it when it ends')
    await session?.client.end().catch(() => {})
  }
  let left: Promise<void> | undefined
  return {
    url,
    up: () => session !== undefined,
    leave: () => {
      left ??= leave()
      return left
    },
  }
}

/**
 * Starts or finds the server, connects and takes the locks. Starts over if another process stops the server meanwhile.
 */
async function enter(cluster: Cluster, purpose: Purpose, signal: AbortSignal): Promise<Session> {
  const giveUpAt = Date.now() + patienceMs
  for (;;) {
    const { socketDir } = await ensureServer(cluster, signal)
    try {
      return await openSession(cluster, socketDir, purpose)
    } catch (error) {
      if (error instanceof EmbeddedError) throw error
      if (Date.now() > giveUpAt)
        throw new EmbeddedError(`The embedded PostgreSQL in ${cluster.path} fails: ${(error as Error).message}.`, {
          cause: error,
        })
      await setTimeout(retryMs, undefined, { signal })
    }
  }
}

/**
 * Retries {@link enter} until it succeeds. Resolves with undefined when `signal` aborts. Each new problem is logged
 * once.
 */
async function enterAgain(cluster: Cluster, socketDir: string, signal: AbortSignal, log: (line: string) => void) {
  let logged = ''
  while (!signal.aborted) {
    try {
      const session = await enter(cluster, 'serve', signal)
      if (session.socketDir === socketDir) return session
      await session.client.end()
      throw new EmbeddedError(`The embedded PostgreSQL now listens in ${session.socketDir}. Restart the service.`)
    } catch (error) {
      const message = explainFullDisk((error as Error).message, cluster.path)
      if (message !== logged && !signal.aborted) log(message)
      logged = message
    }
    await setTimeout(retryMs, undefined, { signal }).catch(() => {})
  }
  return undefined
}

async function openSession(cluster: Cluster, socketDir: string, purpose: Purpose): Promise<Session> {
  const client = new pg.Client({
    connectionString: serverUrl(cluster, socketDir, 'postgres'),
    application_name: `kith ${purpose} pid ${process.pid}`,
    keepAlive: true,
  })
  client.on('error', () => {})
  const lost = new Promise<void>(resolve => client.once('end', () => resolve()))
  try {
    await client.connect()
    await client.query('select pg_advisory_lock_shared($1, $2)', [lock.class, lock.use])
    if (purpose === 'serve') await takeOwnership(client, cluster)
    await createDatabase(client)
    return { client, lost, url: serverUrl(cluster, socketDir, 'kith'), socketDir }
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

/**
 * Takes ownership. Throws an error with the name of the owner, unless the owner is dead and the server has not noticed
 * yet.
 */
async function takeOwnership(client: pg.Client, cluster: Cluster) {
  const giveUpAt = Date.now() + patienceMs
  for (;;) {
    const { rows: locks } = await client.query('select pg_try_advisory_lock($1, $2) as acquired', [
      lock.class,
      lock.owner,
    ])
    if (locks[0].acquired) return
    const { rows: holders } = await client.query<{ application_name: string }>(
      `select application_name from pg_stat_activity join pg_locks using (pid)
        where locktype = 'advisory' and classid = $1 and objid = $2 and granted`,
      [lock.class, lock.owner],
    )
    const owner = holders[0]?.application_name
    const pid = Number(owner?.split(' ').at(-1))
    if (owner !== undefined && ((await commandLine(pid)) !== '' || Date.now() > giveUpAt))
      throw new EmbeddedError(
        `The data folder ${cluster.path} is in use by another service, ${owner}: stop that service, or set KITH_DATA_DIR to another folder.`,
      )
    await setTimeout(retryMs)
  }
}

async function createDatabase(client: pg.Client) {
  const { rows } = await client.query(`select from pg_database where datname = 'kith'`)
  if (rows.length > 0) return
  await client.query('create database kith').catch(error => {
    // Another process also started for the first time, and has created the database.
    if (!['42P04', '23505'].includes(error.code)) throw error
  })
}

/**
 * Whether no other process uses the server. Undefined if the server is lost. The exclusive lock blocks other processes.
 */
async function isLastUser({ client }: Session): Promise<boolean | undefined> {
  try {
    await client.query('select pg_advisory_unlock_shared($1, $2)', [lock.class, lock.use])
    const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as last', [lock.class, lock.use])
    return rows[0].last
  } catch {
    return undefined
  }
}
