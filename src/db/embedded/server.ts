import { spawn } from 'node:child_process'
import { open, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { withConnection } from '../servers/servers.ts'
import { archiveSettings } from './archiving.ts'
import { type Cluster, superuser } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { cleanEnvironment, commandLine } from './processes.ts'
import { forgetSocketFolder, socketFolder } from './socket.ts'

/** A running server process, as described by its `postmaster.pid`. */
export type Server = { pid: number; socketDir: string }

const pollMs = 20
/** After kill -9, the processes of the killed server hold its lock file and shared memory for another 1–2 s. */
const patienceMs = 10_000
const stopPatienceMs = 60_000
const minFreeBytes = 64 * 1024
const logLimitBytes = 10 * 1024 * 1024
const notYetReleasedPattern = /lock file .* (already exists|is empty)|shared memory block .* is still in use/

/** The URL of a database of the server. */
export function serverUrl(cluster: Cluster, socketDir: string, database: string): string {
  const host = encodeURIComponent(socketDir)
  return `postgresql://${superuser}:${cluster.password}@localhost:5432/${database}?host=${host}`
}

/**
 * Resolves with the running server of a cluster once it accepts connections. Starts one if there is none, and waits for
 * one that is starting (recovery may take minutes) or stopping. Throws {@link EmbeddedError}. Rejects when `signal`
 * aborts.
 */
export async function ensureServer(cluster: Cluster, signal?: AbortSignal): Promise<Server> {
  let giveUpAt = Date.now() + patienceMs
  for (;;) {
    signal?.throwIfAborted()
    const { server, stalePid, busy } = await findServer(cluster)
    const problem = server ? await probe(cluster, server) : await launch(cluster, stalePid, signal)
    if (server && problem === undefined) return server
    const isFatal = !server && problem !== undefined && !notYetReleasedPattern.test(problem)
    const isEmptyPidFile = !server && Date.now() > giveUpAt && problem?.includes('"postmaster.pid" is empty')
    // The server creates the file and then writes it. If the server is killed in between, the file stays empty.
    if (isEmptyPidFile) await rm(join(cluster.path, 'data', 'postmaster.pid'))
    if (problem === undefined || busy || isEmptyPidFile) giveUpAt = Date.now() + patienceMs
    else if (isFatal || Date.now() > giveUpAt) throw new EmbeddedError(startProblem(cluster, server, problem))
    if (problem !== undefined) await setTimeout(pollMs, undefined, { signal })
  }
}

function startProblem(cluster: Cluster, server: Server | undefined, problem: string) {
  return server
    ? `The embedded PostgreSQL in ${cluster.path} runs as process ${server.pid} but does not accept connections (${problem}). End it with kill -INT ${server.pid} and start again.`
    : `The embedded PostgreSQL in ${cluster.path} does not start:\n${problem}`
}

/** Stops the server and its running statements (a fast shutdown), and waits until it has ended. */
export async function stopServer(cluster: Cluster) {
  const { server } = await findServer(cluster)
  // The record is deleted before the server ends, so that the next start does not use a folder that is about to be
  // removed.
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
  // The server may not be a child of this process, so an exit event may never come.
  while (await isServer(cluster, pid)) {
    if (Date.now() > giveUpAt)
      throw new EmbeddedError(`The embedded PostgreSQL (pid ${pid}) did not end within ${stopPatienceMs / 1_000} s.`)
    await setTimeout(pollMs)
  }
}

/**
 * Reads `postmaster.pid`. Resolves with the running server, or with the stale pid of a dead server, which may belong to
 * another program by now. `busy` is true while the server starts or stops.
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

/**
 * Connects to the server once. Resolves with the error message, or with undefined on success. Throws {@link
 * EmbeddedError} for a wrong password, because waiting does not help.
 */
const probe = (cluster: Cluster, { socketDir }: Server): Promise<string | undefined> =>
  withConnection(serverUrl(cluster, socketDir, 'postgres'), async () => undefined).catch(
    ({ code, message }: NodeJS.ErrnoException) => {
      if (code !== '28P01') return message
      throw new EmbeddedError(
        `The embedded PostgreSQL in ${cluster.path} refuses the password in ${join(cluster.path, 'password')}. Put the file back that belongs to these data.`,
      )
    },
  )

/**
 * A quarter of the available memory, in MB, as PostgreSQL's documentation recommends. The memory is allocated page by
 * page, as data arrives. Ten million people fit into 6 GB. A page outside the buffers is copied from the system's
 * cache, and its checksum is computed each time.
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
  // The errors of statements may quote personal data. The service logs them itself, without that data.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
}

/**
 * Starts the server in a separate session, so that Ctrl-C in the terminal does not stop it before the service has
 * drained. Resolves with undefined once it accepts connections, or with its log output if it ended before.
 */
async function launch(cluster: Cluster, stalePid: number | undefined, signal?: AbortSignal) {
  const socketDir = await socketFolder(cluster)
  const logPath = join(cluster.path, 'server.log')
  const logStart = await rotateLog(logPath)
  const logFile = await open(logPath, 'a', 0o600)
  const options = Object.entries({
    ...settings,
    shared_buffers: `${cluster.sharedBuffersMb ?? sharedBuffers()}MB`,
    unix_socket_directories: socketDir,
    ...(await archiveSettings(cluster.path)),
    ...cluster.settings,
  })
  const args = ['-D', join(cluster.path, 'data'), ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const child = spawn(cluster.binaries.postgres, args, {
    ...cluster.user,
    cwd: '/',
    detached: true,
    stdio: ['ignore', logFile.fd, logFile.fd],
    // The server treats a lock file with this pid as stale, as it does for the pid of its parent.
    env: stalePid === undefined ? cleanEnvironment : { ...cleanEnvironment, PG_GRANDPARENT_PID: String(stalePid) },
  })
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    // The log is missing if another process has removed the folder meanwhile.
    child.once('exit', async () => resolve((await readFile(logPath, 'utf8').catch(() => '')).slice(logStart).trim()))
  })
  child.unref()
  await logFile.close()
  try {
    return await waitUntilReady(cluster, { pid: child.pid ?? 0, socketDir }, ended, signal)
  } catch (error) {
    // Without the server, nothing else may keep this process running.
    child.ref()
    child.kill('SIGINT')
    await ended
    throw error
  }
}

/** The log output of a server that ended, or undefined once it accepts connections. */
async function waitUntilReady(cluster: Cluster, server: Server, ended: Promise<string>, signal?: AbortSignal) {
  for (;;) {
    signal?.throwIfAborted()
    const endOutput = await Promise.race([ended, setTimeout(pollMs)])
    if (endOutput !== undefined) return (await fullDisk(cluster)) ?? (endOutput || 'it ended without a message')
    if ((await probe(cluster, server)) === undefined) return undefined
  }
}

/** On a full disk, the server's log lacks a part of the reason for its end. */
async function fullDisk({ path }: Cluster): Promise<string | undefined> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize < minFreeBytes ? 'No space left on device' : undefined
}

/** Renames a log that has reached its limit. Returns the length of the current log. */
async function rotateLog(path: string): Promise<number> {
  const { size } = await stat(path).catch(() => ({ size: 0 }))
  if (size < logLimitBytes) return size
  await rename(path, `${path}.1`)
  return 0
}
