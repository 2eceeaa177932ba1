import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, lstat, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach } from 'vitest'
import { commandLine } from '../../src/db/embedded/processes.ts'
import { fillDataFolder } from './data-folder.ts'

const script = fileURLToPath(new URL('./embedded-process.ts', import.meta.url))

/** A process with an embedded PostgreSQL. `logged` has its log lines so far. */
export type EmbeddedProcess = { child: ChildProcess; url: string; dataDir: string; logged: string[] }

type Message = { url?: string; dataDir?: string; error?: string; log?: string }

/** The fixture of a test. `base` is its own folder. `dataDir` is a path inside that does not exist yet. */
export type EmbeddedFixture = {
  base: string
  dataDir: string
  /** Processes that the fixture kills after the test. */
  children: ChildProcess[]
  /** Fills `dataDir` as a first start and a stop of the service leave it. */
  fill(): Promise<void>
  /** Launches a process that starts the PostgreSQL of `dataDir`, in its own process group. */
  launch(purpose: 'serve' | 'command'): ChildProcess
  /** Launches such a process and waits until its server is ready. Rejects with its error message. */
  start(purpose: 'serve' | 'command'): Promise<EmbeddedProcess>
}

/** Gives every test of the file a fixture of its own, and stops what the test left running. */
export function useEmbeddedFixture(): EmbeddedFixture {
  const fixture: EmbeddedFixture = {
    base: '',
    dataDir: '',
    children: [],
    fill: () => fillDataFolder(fixture.dataDir),
    launch: purpose => {
      const child = fork(script, [fixture.dataDir, purpose], { execArgv: [], detached: true })
      fixture.children.push(child)
      return child
    },
    start: purpose => waitUntilReady(fixture.launch(purpose)),
  }
  beforeEach(async () => {
    fixture.base = await mkdtemp(join(tmpdir(), `kith-test-${process.pid}-`))
    await chmod(fixture.base, 0o755)
    fixture.dataDir = join(fixture.base, '.kith')
    fixture.children = []
  })
  afterEach(() => cleanUp(fixture))
  return fixture
}

async function cleanUp({ base, dataDir, children }: EmbeddedFixture) {
  for (const child of children) await kill(child)
  const path = await realpath(join(dataDir, 'postgresql')).catch(() => undefined)
  if (path) await endServer(path)
  if (path?.startsWith('/var/lib/kith/data-')) await rm(path, { recursive: true })
  await rm(base, { recursive: true, maxRetries: 10 })
}

function waitUntilReady(child: ChildProcess): Promise<EmbeddedProcess> {
  const logged: string[] = []
  return new Promise((resolve, reject) => {
    child.once('exit', code => reject(new Error(`exited with ${code} before it was ready`)))
    child.on('message', ({ url, dataDir, error, log }: Message) => {
      if (log !== undefined) logged.push(log)
      if (error !== undefined) reject(new Error(error))
      if (url !== undefined && dataDir !== undefined) resolve({ child, url, dataDir, logged })
    })
  })
}

export const isRunning = (child: ChildProcess) => child.exitCode === null && child.signalCode === null

/** Makes the process stop its PostgreSQL, and waits for its exit. */
export async function stop({ child }: EmbeddedProcess) {
  const exit = once(child, 'exit')
  child.send('stop')
  await exit
}

/** Kills a process with SIGKILL, and waits for its exit. */
export async function kill(child: ChildProcess) {
  if (!isRunning(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** The pid of the server process on a PostgreSQL folder. Undefined if none runs. */
export async function serverPid(path: string): Promise<number | undefined> {
  const text = await readFile(join(path, 'data', 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  return pid > 0 && (await commandLine(pid)).includes(`postgres -D ${path}`) ? pid : undefined
}

/** Kills only the server process with SIGKILL, and waits for its end. Returns its pid; throws if none runs. */
export async function killServer(path: string): Promise<number> {
  const pid = await serverPid(path)
  if (pid === undefined) throw new Error(`no server runs on ${path}`)
  process.kill(pid, 'SIGKILL')
  while ((await commandLine(pid)) !== '') await setTimeout(10)
  return pid
}

async function endServer(path: string) {
  const pid = await serverPid(path)
  // SIGQUIT is an immediate shutdown. Unlike SIGKILL, it ends the other processes of the server too.
  if (pid !== undefined) process.kill(pid, 'SIGQUIT')
  while (await serverPid(path)) await setTimeout(10)
  const socketDir = await readFile(join(path, 'socket'), 'utf8').catch(() => undefined)
  if (socketDir) await rm(socketDir, { recursive: true, force: true })
}

/** Whether a path exists. */
export const exists = (path: string) => lstat(path).then(Boolean, () => false)

/** Polls every 5 ms until `find` returns true. */
export async function until(find: () => boolean | Promise<boolean>) {
  while (!(await find())) await setTimeout(5)
}

/** Runs a statement on a new connection. Returns its rows. */
export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** Runs a statement until the server answers it. Returns its rows. */
export async function queryOnceUp(url: string, text: string): Promise<Record<string, unknown>[]> {
  for (;;) {
    const rows = await query(url, text).catch(() => undefined)
    if (rows) return rows
    await setTimeout(20)
  }
}

/** The folder of the socket that the URL of an embedded PostgreSQL names. */
export const socketFolderOf = (url: string) => new URL(url).searchParams.get('host')!

/** Writes one row, which {@link readNotes} finds as long as it is not lost: {@link writtenRows}. */
export const writeNotes = (url: string) => query(url, `create table notes as select 'kept' as text`)
export const readNotes = (url: string) => queryOnceUp(url, 'select text from notes')
export const writtenRows = [{ text: 'kept' }]
