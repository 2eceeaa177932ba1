import { spawn } from 'node:child_process'
import { open, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, superuser } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { cleanEnvironment, commandLine } from './processes.ts'
import { forgetSocketFolder, socketFolder } from './socket.ts'

/** A running server process, as its `postmaster.pid` has it. */
export type Server = { pid: number; socketDir: string }

const pollMs = 50
/** After kill -9 the last server's processes hold its lock file and shared memory for another 1–2 s. */
const patienceMs = 10_000
const stopPatienceMs = 60_000
const leastFreeBytes = 64 * 1024
const logLimitBytes = 10 * 1024 * 1024
const notYetReleased = /lock file .* (already exists|is empty)|shared memory block .* is still in use/

/** The URL of a database of the server. */
export function serverUrl(cluster: Cluster, socketDir: string, database: string): string {
  const host = encodeURIComponent(socketDir)
  return `postgresql://${superuser}:${cluster.password}@localhost:5432/${database}?host=${host}`
}

/**
 * The running server of a cluster, answering; started where there is none. A server that is starting (recovery may
 * take minutes) or stopping is waited for. Throws {@link EmbeddedError}; rejects when `signal` aborts.
 */
export async function ensureServer(cluster: Cluster, signal?: AbortSignal): Promise<Server> {
  let giveUpAt = Date.now() + patienceMs
  for (;;) {
    signal?.throwIfAborted()
    const { server, stalePid, busy } = await findServer(cluster)
    const problem = server ? await knock(cluster, server) : await launch(cluster, stalePid, signal)
    if (server && problem === undefined) return server
    const hopeless = !server && problem !== undefined && !notYetReleased.test(problem)
    const remnant = !server && Date.now() > giveUpAt && problem?.includes('"postmaster.pid" is empty')
    // Written and named in two steps: a server killed in between leaves it empty for ever.
    if (remnant) await rm(join(cluster.path, 'data', 'postmaster.pid'))
    if (problem === undefined || busy || remnant) giveUpAt = Date.now() + patienceMs
    else if (hopeless || Date.now() > giveUpAt) throw new EmbeddedError(startProblem(cluster, server, problem))
    if (problem !== undefined) await setTimeout(pollMs, undefined, { signal })
  }
}

function startProblem(cluster: Cluster, server: Server | undefined, problem: string) {
  return server
    ? `The embedded PostgreSQL in ${cluster.path} runs as process ${server.pid} but lets nobody in (${problem}); end it with kill -INT ${server.pid} and start again.`
    : `The embedded PostgreSQL in ${cluster.path} does not start:\n${problem}`
}

/** Ends the server, running statements included (a fast shutdown), and waits until it is gone. */
export async function stopServer(cluster: Cluster) {
  const { server } = await findServer(cluster)
  // Before the end: who starts next must not find a folder that is about to go.
  const recorded = await forgetSocketFolder(cluster)
  if (server) {
    process.kill(server.pid, 'SIGINT')
    await waitForEnd(cluster, server.pid)
  }
  for (const folder of new Set([recorded, server?.socketDir]))
    if (folder) await rm(folder, { recursive: true, force: true })
}

async function waitForEnd(cluster: Cluster, pid: number) {
  const giveUpAt = Date.now() + stopPatienceMs
  // It need not be our child, so there is no event to wait for.
  while (await isServer(cluster, pid)) {
    if (Date.now() > giveUpAt)
      throw new EmbeddedError(`The embedded PostgreSQL (pid ${pid}) did not end within ${stopPatienceMs / 1_000} s.`)
    await setTimeout(pollMs)
  }
}

/**
 * What `postmaster.pid` says: the server, or the pid a dead one left there, which may be another program's by now.
 * `busy` while it starts or stops.
 */
async function findServer(cluster: Cluster): Promise<{ server?: Server; stalePid?: number; busy?: boolean }> {
  const text = await readFile(join(cluster.path, 'data', 'postmaster.pid'), 'utf8').catch(() => '')
  const [pidLine = '', , , , socketDir = '', , , status = ''] = text.split('\n')
  const pid = Number(pidLine)
  if (!Number.isInteger(pid) || pid <= 0) return {}
  if (!(await isServer(cluster, pid))) return { stalePid: pid }
  return { server: { pid, socketDir }, busy: status.trim() !== 'ready' }
}

async function isServer(cluster: Cluster, pid: number): Promise<boolean> {
  return (await commandLine(pid)).includes(`postgres -D ${join(cluster.path, 'data')} -c `)
}

/** Whether the server lets us in; if not, why. */
async function knock(cluster: Cluster, { socketDir }: Server): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: serverUrl(cluster, socketDir, 'postgres') })
  client.on('error', () => {})
  try {
    await client.connect()
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * A quarter of the memory that there is, in MB, as PostgreSQL's documentation recommends; it is taken page by page, as data
 * comes. Ten million people find room in 6 GB: what is not there is copied from the system's cache, page by page, and its
 * checksum is computed each time.
 */
function sharedBuffers(): number {
  const bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.floor(Math.min(Math.max(bytes / 4 / 2 ** 20, 256), 8_192))
}

const settings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '100',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  // Errors of statements may quote personal data; the service reports them itself, without.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

/**
 * Starts the server in a session of its own, so that a Ctrl-C at the terminal leaves it alone until the service has
 * drained. Resolves once it answers, or with what it said when it ended before.
 */
async function launch(cluster: Cluster, stalePid: number | undefined, signal?: AbortSignal) {
  const socketDir = await socketFolder(cluster)
  const logPath = join(cluster.path, 'server.log')
  const logStart = await turnLog(logPath)
  const logFile = await open(logPath, 'a', 0o600)
  const options = Object.entries({
    ...settings,
    shared_buffers: `${sharedBuffers()}MB`,
    unix_socket_directories: socketDir,
  })
  const args = ['-D', join(cluster.path, 'data'), ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const child = spawn(cluster.binaries.postgres, args, {
    ...cluster.user,
    cwd: '/',
    detached: true,
    stdio: ['ignore', logFile.fd, logFile.fd],
    // The server takes a lock file with this pid for a dead one's, as with its own parent's pid.
    env: stalePid === undefined ? cleanEnvironment : { ...cleanEnvironment, PG_GRANDPARENT_PID: String(stalePid) },
  })
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    // The log is not there where somebody else has removed the folder meanwhile.
    child.once('exit', async () => resolve((await readFile(logPath, 'utf8').catch(() => '')).slice(logStart).trim()))
  })
  child.unref()
  await logFile.close()
  try {
    return await answerOf(cluster, { pid: child.pid ?? 0, socketDir }, ended, signal)
  } catch (error) {
    child.kill('SIGINT')
    await ended
    throw error
  }
}

/** What the server said when it ended; undefined when it answers. */
async function answerOf(cluster: Cluster, server: Server, ended: Promise<string>, signal?: AbortSignal) {
  for (;;) {
    signal?.throwIfAborted()
    const lastWords = await Promise.race([ended, setTimeout(pollMs)])
    if (lastWords !== undefined) return (await fullDisk(cluster)) ?? (lastWords || 'it ended without a word')
    if ((await knock(cluster, server)) === undefined) return undefined
  }
}

/** On a full disk the server cannot write down why it ends, or only half of it. */
async function fullDisk({ path }: Cluster): Promise<string | undefined> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize < leastFreeBytes ? 'No space left on device' : undefined
}

/** Puts a long log aside; returns the length of the one that is written on. */
async function turnLog(path: string): Promise<number> {
  const { size } = await stat(path).catch(() => ({ size: 0 }))
  if (size < logLimitBytes) return size
  await rename(path, `${path}.1`)
  return 0
}
