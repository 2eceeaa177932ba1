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
import { startFlags } from '../../scripts/start-flags.ts'
import { startEmbedded } from '../../src/db/embedded.ts'
import { allScopes, type Send } from './service.ts'

export const checkout = fileURLToPath(new URL('../../', import.meta.url))
const program = join(checkout, 'cli', 'main.ts')

/** A `kith` in a process of its own. */
export type Kith = {
  child: ChildProcess
  /** What it has said so far. */
  said: { stdout: string; stderr: string }
  /** Where it listens, as its log says it; rejects when it ends before. */
  ready: Promise<string>
  /** The exit code, once it has ended and said all; null when a signal ended it. */
  ended: Promise<number | null>
}

/** What was started; the pid is that of a process, or the negative one of a process group. */
const launched: { kith: Kith; pid: number }[] = []
const folders: string[] = []

/** Starts the real program with this environment and nothing else; `serve` on a free port unless told otherwise. */
export function launch(environment: Record<string, string>, words = ['serve'], cwd = checkout): Kith {
  return attend(process.execPath, [...startFlags, program, ...words], { env: { PORT: '0', ...environment }, cwd })
}

/** Starts the service as a person does, by `npm start`, in a process group of its own: its id is the pid of npm. */
export function launchByNpm(environment: Record<string, string>, ...words: string[]): Kith {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, PORT: '0', ...environment }
  return attend('npm', ['start', '--', ...words], { env, cwd: checkout, detached: true })
}

function attend(file: string, words: string[], options: SpawnOptions): Kith {
  const child = spawn(file, words, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', part => (said.stdout += part))
  child.stderr.setEncoding('utf8').on('data', part => (said.stderr += part))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const kith = { child, said, ready: readiness(child, said, ended), ended }
  kith.ready.catch(() => {})
  launched.push({ kith, pid: options.detached ? -child.pid! : child.pid! })
  return kith
}

function readiness({ stdout }: ChildProcess, said: Kith['said'], ended: Kith['ended']): Promise<string> {
  return new Promise((resolve, reject) => {
    stdout!.on('data', () => {
      const address = /"msg":"kith is ready at ([^"]+)"\}\n/.exec(said.stdout)?.[1]
      if (address) resolve(address)
    })
    ended.then(code => reject(new Error(`ended with ${code} before it was ready: ${said.stdout}${said.stderr}`)))
  })
}

/** The lines to paste that the log of a start shows. */
export function firstStepsOf({ said }: Kith): string[] {
  const line = said.stdout.split('\n').find(text => text.includes('"first_steps"'))
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

/** Whether there is such a process, or of a negative pid any process of such a group. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A folder of the test's own, which a server of root's is able to enter. */
export async function makeFolder(): Promise<string> {
  // Whoever finds it after this run was killed knows by the pid that it may go.
  const folder = await mkdtemp(join(tmpdir(), `kith-test-${process.pid}-`))
  await chmod(folder, 0o711)
  folders.push(folder)
  return folder
}

/** Whether a server runs, or died, on the embedded data of this folder: a stopped one takes its lock file along. */
export const hasServer = (dataDir: string): Promise<boolean> =>
  lstat(join(dataDir, 'postgresql', 'data', 'postmaster.pid')).then(Boolean, () => false)

/** Ends whatever the file's tests have left running, and removes their folders. */
export async function endProcesses(): Promise<void> {
  await stopProcesses()
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, maxRetries: 10 })
}

/** Ends whatever the file's tests have left running, in their folders too. */
export async function stopProcesses(): Promise<void> {
  for (const { kith, pid } of launched.splice(0)) {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    await kith.ended
  }
  for (const dataDir of folders.flatMap(folder => [folder, join(folder, '.kith')]))
    if (await hasServer(dataDir)) await (await startEmbedded({ dataDir, purpose: 'command', log: () => {} })).stop()
}

/** A token made by the command, on the database of this environment. */
export async function tokenFrom(environment: Record<string, string>, scope = allScopes): Promise<string> {
  const { ended, said } = launch(environment, ['token', '--org', 'default', '--scope', scope])
  if ((await ended) !== 0) throw new Error(said.stderr)
  return said.stdout.trim()
}

/** Sends JSON, or a text as it is, with a token; answers status, headers and the envelope. */
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

/** A bare connection to the service, for what no HTTP client would send. */
export async function openSocket(address: string): Promise<Socket> {
  const { hostname, port } = new URL(address)
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  // Being cut off is an end like any other.
  socket.on('error', () => {})
  return socket
}

/** Sends these bytes and gives back all that comes until the other side closes. */
export async function exchange(address: string, bytes: string): Promise<string> {
  const socket = await openSocket(address)
  socket.write(bytes)
  return text(socket)
}

/** Status and envelope of an HTTP answer as text. */
export function parseAnswer(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body: body === '' ? {} : JSON.parse(body) }
}

/** Somebody else's hold of a person's row. */
export type Lock = {
  /** How many statements wait for a lock in this database. */
  waiting(): Promise<number>
  /** Ends the connections whose statements wait; answers how many. */
  endWaiting(): Promise<number>
  release(): Promise<void>
}

/** Locks the row of a person on a connection of its own, until `release`. */
export async function lockPerson(url: string, external_id: string): Promise<Lock> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  const locked = await client.query('select from entities where external_id = $1 for update', [external_id])
  if (locked.rowCount !== 1) throw new Error(`there is no ${external_id} to lock`)
  const count = async (column: string) => {
    const text = `select ${column} from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    // Within a transaction the server shows the connections that it showed first.
    await client.query('select pg_stat_clear_snapshot()')
    return (await client.query(text)).rowCount ?? 0
  }
  return {
    waiting: () => count('pid'),
    endWaiting: () => count('pg_terminate_backend(pid)'),
    release: () => client.end().catch(() => {}),
  }
}
