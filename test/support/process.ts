import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, lstat, mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { makeToken } from '../../cli/connection.ts'
import { withSession } from '../../cli/session.ts'
import { startFlags } from '../../scripts/start-flags.ts'
import { startEmbedded } from '../../src/db/embedded.ts'
import { compileCache } from './command.ts'
import { fillDataFolder } from './data-folder.ts'
import { allScopes, type Send } from './service.ts'

export const checkout = fileURLToPath(new URL('../../', import.meta.url))
const program = join(checkout, 'cli', 'main.ts')

/** A `kith` process. */
export type Kith = {
  child: ChildProcess
  /** The output so far. */
  output: { stdout: string; stderr: string }
  /** The address that the log reports. Rejects if the process ends before. */
  ready: Promise<string>
  /** The exit code, once the process has ended and its output is complete. Null if a signal ended it. */
  ended: Promise<number | null>
}

/** All launched processes. `pid` is a process id, or the negated id of a process group. */
const launched: { kith: Kith; pid: number }[] = []
const folders: string[] = []

/** Starts the real program with exactly this environment. By default it is `serve` on a free port. */
export const launch = (environment: Record<string, string>, words = ['serve'], cwd = checkout): Kith =>
  launchProgram(program, environment, words, cwd)

/** Starts a program of another folder, such as that of an earlier release. */
export function launchProgram(
  file: string,
  environment: Record<string, string>,
  words = ['serve'],
  cwd?: string,
): Kith {
  const env = { PORT: '0', ...compileCache, ...environment }
  return spawnKith(process.execPath, [...startFlags, file, ...words], { env, ...(cwd && { cwd }) })
}

/** Starts the service by `npm start`, in its own process group. The group's id is the pid of npm. */
export function launchByNpm(environment: Record<string, string>, ...words: string[]): Kith {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, PORT: '0', ...compileCache, ...environment }
  return spawnKith('npm', ['start', '--', ...words], { env, cwd: checkout, detached: true })
}

function spawnKith(file: string, words: string[], options: SpawnOptions): Kith {
  const child = spawn(file, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', part => (output.stdout += part))
  child.stderr.setEncoding('utf8').on('data', part => (output.stderr += part))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const kith = { child, output, ready: waitUntilReady(child, output, ended), ended }
  kith.ready.catch(() => {})
  launched.push({ kith, pid: options.detached ? -child.pid! : child.pid! })
  return kith
}

function waitUntilReady({ stdout }: ChildProcess, output: Kith['output'], ended: Kith['ended']): Promise<string> {
  return new Promise((resolve, reject) => {
    stdout!.on('data', function check() {
      const address = /"msg":"kith is ready at ([^"]+)"\}\n/.exec(output.stdout)?.[1]
      if (address === undefined) return
      stdout!.off('data', check)
      resolve(address)
    })
    ended.then(code => reject(new Error(`exited with ${code} before it was ready: ${output.stdout}${output.stderr}`)))
  })
}

/** The lines to paste that a start logs. */
export function firstStepsOf({ output }: Kith): string[] {
  const line = output.stdout.split('\n').find(text => text.includes('"first_steps"'))
  return line === undefined ? [] : JSON.parse(line).first_steps
}

/** The process ids of a service's workers. */
export const workersOf = ({ child }: Kith): number[] =>
  readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

/** Sends SIGTERM and waits for the exit code. */
export function terminate({ child, ended }: Kith): Promise<number | null> {
  child.kill('SIGTERM')
  return ended
}

/** Whether a process runs. For a negative pid: whether any process of the group runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/**
 * Creates a temporary folder that {@link endProcesses} removes. A server that root runs as another user can enter it.
 */
export async function makeFolder(): Promise<string> {
  // After a killed run, the pid in the name tells a later run that it may remove the folder.
  const folder = await mkdtemp(join(tmpdir(), `kith-test-${process.pid}-`))
  await chmod(folder, 0o711)
  folders.push(folder)
  return folder
}

/** Creates a data folder that a service has started on and stopped, in a folder that {@link endProcesses} removes. */
export async function makeDataFolder(): Promise<string> {
  const dataDir = join(await makeFolder(), '.kith')
  await fillDataFolder(dataDir)
  return dataDir
}

/** Whether an embedded server runs on this data folder, or crashed. A server that stops removes its lock file. */
export const hasServer = (dataDir: string): Promise<boolean> =>
  lstat(join(dataDir, 'postgresql', 'data', 'postmaster.pid')).then(Boolean, () => false)

/** Kills all processes that the tests of the file left running, and removes their folders. */
export async function endProcesses(): Promise<void> {
  await stopProcesses()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, maxRetries: 10 })
}

/** Kills all processes that the tests of the file left running, and stops the embedded servers in their folders. */
export async function stopProcesses(): Promise<void> {
  for (const { kith, pid } of launched.splice(0)) {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    await kith.ended
  }
  for (const dataDir of folders.flatMap(folder => [folder, join(folder, '.kith')]))
    if (await hasServer(dataDir)) await (await startEmbedded({ dataDir, purpose: 'command', log: () => {} })).stop()
}

/** Creates a token on the database of this environment, as `kith token` does, but in this process. */
export const tokenFrom = (environment: Record<string, string>, scope = allScopes): Promise<string> =>
  withSession(environment, session => makeToken(session, { org: 'default', scope, ttl: 3_600, subject: 'cli' }))

/** Creates a client that sends JSON, or text as it is, with a token. It returns status, headers and the envelope. */
export function senderTo(address: string, token: string): Send {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as never }
  }
}

/** Opens a TCP connection to the service, for requests that no HTTP client would send. */
export async function openSocket(address: string): Promise<Socket> {
  const { hostname, port } = new URL(address)
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  // A connection reset is not a failure here.
  socket.on('error', () => {})
  return socket
}

/** Sends bytes on a new connection. Returns everything received until the service closes it. */
export async function exchange(address: string, bytes: string): Promise<string> {
  const socket = await openSocket(address)
  socket.write(bytes)
  return text(socket)
}

/** Parses an HTTP response. Returns its status, its head as text and its JSON body. */
export function parseResponse(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body: body === '' ? {} : JSON.parse(body) }
}

/** A row lock on a person, held by another connection. */
export type Lock = {
  /** Counts the statements that wait for a lock in this database. */
  waiting(): Promise<number>
  /** Terminates the connections whose statements wait for a lock. Returns their number. */
  terminateWaiting(): Promise<number>
  release(): Promise<void>
}

/** Locks the row of a person on a new connection until `release`. Throws if the person does not exist. */
export async function lockPerson(url: string, external_id: string): Promise<Lock> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  const locked = await client.query('select from entities where external_id = $1 for update', [external_id])
  if (locked.rowCount !== 1) throw new Error(`${external_id} does not exist, so its row cannot be locked`)
  const count = async (column: string) => {
    const text = `select ${column} from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    // Within a transaction, PostgreSQL keeps showing the connections of the first query.
    await client.query('select pg_stat_clear_snapshot()')
    return (await client.query(text)).rowCount ?? 0
  }
  return {
    waiting: () => count('pid'),
    terminateWaiting: () => count('pg_terminate_backend(pid)'),
    release: () => client.end().catch(() => {}),
  }
}

/** Locks a table on a new connection until `release`, so that statements that read it wait. */
export async function lockTable(url: string, table: string): Promise<Pick<Lock, 'release'>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  return { release: () => client.end().catch(() => {}) }
}
