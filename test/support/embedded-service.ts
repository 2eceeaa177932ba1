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

const script = fileURLToPath(new URL('./embedded-process.ts', import.meta.url))

/** A process of its own with an embedded PostgreSQL; `logged` grows as it logs. */
export type Service = { child: ChildProcess; url: string; dataDir: string; logged: string[] }

type Message = { url?: string; dataDir?: string; error?: string; log?: string }

/** What a test has: `base` is its own folder, `dataDir` lies in it and does not exist yet. */
export type Ground = {
  base: string
  dataDir: string
  /** Processes that are ended with the test. */
  children: ChildProcess[]
  /** Launches a process that starts the PostgreSQL of `dataDir`, in a process group of its own. */
  launch(purpose: 'serve' | 'command'): ChildProcess
  /** Launches one and waits for it; rejects with the sentence it was refused with. */
  begin(purpose: 'serve' | 'command'): Promise<Service>
}

/** Gives every test of the file its own ground, and clears away whatever it left running. */
export function useGround(): Ground {
  const ground: Ground = {
    base: '',
    dataDir: '',
    children: [],
    launch: purpose => {
      const child = fork(script, [ground.dataDir, purpose], { execArgv: [], detached: true })
      ground.children.push(child)
      return child
    },
    begin: purpose => readiness(ground.launch(purpose)),
  }
  beforeEach(async () => {
    ground.base = await mkdtemp(join(tmpdir(), `kith-test-${process.pid}-`))
    await chmod(ground.base, 0o755)
    ground.dataDir = join(ground.base, '.kith')
    ground.children = []
  })
  afterEach(() => clearGround(ground))
  return ground
}

async function clearGround({ base, dataDir, children }: Ground) {
  for (const child of children) await kill(child)
  const path = await realpath(join(dataDir, 'postgresql')).catch(() => undefined)
  if (path) await endServer(path)
  if (path?.startsWith('/var/lib/kith/data-')) await rm(path, { recursive: true })
  await rm(base, { recursive: true, maxRetries: 10 })
}

function readiness(child: ChildProcess): Promise<Service> {
  const logged: string[] = []
  return new Promise((resolve, reject) => {
    child.once('exit', code => reject(new Error(`ended with ${code} before it was ready`)))
    child.on('message', ({ url, dataDir, error, log }: Message) => {
      if (log !== undefined) logged.push(log)
      if (error !== undefined) reject(new Error(error))
      if (url !== undefined && dataDir !== undefined) resolve({ child, url, dataDir, logged })
    })
  })
}

export const isRunning = (child: ChildProcess) => child.exitCode === null && child.signalCode === null

/** Lets the process stop its PostgreSQL and end. */
export async function stop({ child }: Service) {
  const exit = once(child, 'exit')
  child.send('stop')
  await exit
}

/** kill -9 of one process, awaited. */
export async function kill(child: ChildProcess) {
  if (!isRunning(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** The server process of a PostgreSQL's folder; undefined when none lives. */
export async function serverPid(path: string): Promise<number | undefined> {
  const text = await readFile(join(path, 'data', 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  return pid > 0 && (await commandLine(pid)).includes(`postgres -D ${path}`) ? pid : undefined
}

/** kill -9 of the server process alone, awaited; its pid. */
export async function killServer(path: string): Promise<number> {
  const pid = await serverPid(path)
  if (pid === undefined) throw new Error(`no server runs on ${path}`)
  process.kill(pid, 'SIGKILL')
  while ((await commandLine(pid)) !== '') await setTimeout(10)
  return pid
}

async function endServer(path: string) {
  const pid = await serverPid(path)
  // An immediate shutdown: unlike kill -9 it takes the other processes of the server along before it ends.
  if (pid !== undefined) process.kill(pid, 'SIGQUIT')
  while (await serverPid(path)) await setTimeout(10)
  const socketDir = await readFile(join(path, 'socket'), 'utf8').catch(() => undefined)
  if (socketDir) await rm(socketDir, { recursive: true, force: true })
}

export const exists = (path: string) => lstat(path).then(Boolean, () => false)

/** Resolves when `find` says so. */
export async function until(find: () => boolean | Promise<boolean>) {
  while (!(await find())) await setTimeout(5)
}

/** Rows of one statement on a connection of its own. */
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

/** Rows of one statement, as soon as the server answers it. */
export async function queryOnceUp(url: string, text: string): Promise<Record<string, unknown>[]> {
  for (;;) {
    const rows = await query(url, text).catch(() => undefined)
    if (rows) return rows
    await setTimeout(20)
  }
}
