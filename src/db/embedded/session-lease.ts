import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { explainFullDisk } from './full-disk.ts'
import { commandLine } from './processes.ts'
import { ensureServer, serverUrl, stopServer } from './server.ts'

export type Purpose = 'serve' | 'command'

/** Being there: a connection that holds our locks for as long as we use the server. */
export type SessionLease = {
  url: string
  /** Whether the server has not been lost, as far as we know. */
  up(): boolean
  leave(): Promise<void>
}

type Session = { client: pg.Client; lost: Promise<void>; url: string; socketDir: string }

// Advisory locks of the database `postgres`. `owner` is exclusive to the one that serves. `use` is shared by all who
// are there; the last one out gets it exclusively and turns off the light.
const lock = { class: 0x6b697468, owner: 1, use: 2 }
const retryMs = 100
const patienceMs = 10_000

/**
 * Attends the server of a cluster, starting it where it does not run. While we attend as `serve` we own the data
 * folder, and the server is started again whenever it is lost. Throws {@link EmbeddedError}.
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
    log('the embedded PostgreSQL is lost; starting it again')
    session = await enterAgain(cluster, socketDir, leaving.signal, log)
    if (!session) return
    log('the embedded PostgreSQL is back')
    watch(session)
  }
  watch(session)
  const leave = async () => {
    leaving.abort()
    await recovery
    const last = session ? await isLastOut(session) : undefined
    // Where our locks were lost with the server, tidying up is left to the one that serves.
    if (last ?? purpose === 'serve') await stopServer(cluster)
    else if (last === false) log('another kith process uses the embedded PostgreSQL still, and stops it at its end')
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

/** The server, a connection and our locks. Another may be turning the server off meanwhile: then again from the start. */
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

/** Enters until it succeeds; undefined when we leave before that. Each new problem is logged once. */
async function enterAgain(cluster: Cluster, socketDir: string, signal: AbortSignal, log: (line: string) => void) {
  let logged = ''
  while (!signal.aborted) {
    try {
      const session = await enter(cluster, 'serve', signal)
      if (session.socketDir === socketDir) return session
      await session.client.end()
      throw new EmbeddedError(`The embedded PostgreSQL listens in ${session.socketDir} now: start the service anew.`)
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

/** Throws naming the owner, unless that one is dead and the server is about to notice. */
async function takeOwnership(client: pg.Client, cluster: Cluster) {
  const giveUpAt = Date.now() + patienceMs
  for (;;) {
    const { rows: taken } = await client.query('select pg_try_advisory_lock($1, $2) as ours', [lock.class, lock.owner])
    if (taken[0].ours) return
    const { rows: holders } = await client.query<{ application_name: string }>(
      `select application_name from pg_stat_activity join pg_locks using (pid)
        where locktype = 'advisory' and classid = $1 and objid = $2 and granted`,
      [lock.class, lock.owner],
    )
    const owner = holders[0]?.application_name
    const pid = Number(owner?.split(' ').at(-1))
    if (owner !== undefined && ((await commandLine(pid)) !== '' || Date.now() > giveUpAt))
      throw new EmbeddedError(
        `The data folder ${cluster.path} is in use by another service, ${owner}: stop that one, or set KITH_DATA_DIR to another folder.`,
      )
    await setTimeout(retryMs)
  }
}

async function createDatabase(client: pg.Client) {
  const { rows } = await client.query(`select from pg_database where datname = 'kith'`)
  if (rows.length > 0) return
  await client.query('create database kith').catch(error => {
    // Two first starts at once: the other's will do.
    if (!['42P04', '23505'].includes(error.code)) throw error
  })
}

/** Whether nobody else is there; undefined when the server is lost. Until we end, nobody comes in either. */
async function isLastOut({ client }: Session): Promise<boolean | undefined> {
  try {
    await client.query('select pg_advisory_unlock_shared($1, $2)', [lock.class, lock.use])
    const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as last', [lock.class, lock.use])
    return rows[0].last
  } catch {
    return undefined
  }
}
