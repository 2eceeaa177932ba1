import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, openCluster, superuser } from '../../src/db/embedded/cluster.ts'
import { cleanEnvironment, run } from '../../src/db/embedded/processes.ts'
import { makeFolder } from '../support/process.ts'

/** A PostgreSQL server of one test, which can be killed, frozen and restarted under the same URL. */
export type OwnPostgres = {
  url: string
  /** The folder that contains the server's data. */
  path: string
  cluster: Cluster
  start(): Promise<void>
  /** Sends SIGINT, as `pg_ctl restart` does, which aborts running statements. Resolves when the server has ended. */
  stop(): Promise<void>
  /** Sends SIGKILL to the server process alone, or to all its processes. */
  kill(target: 'postmaster' | 'all'): Promise<void>
  /** Sends SIGSTOP to every process, which simulates a frozen machine. */
  freeze(): Promise<void>
  thaw(): Promise<void>
}

const pollMs = 20
// The load has few names and many renames, so it deadlocks. A short timeout keeps deadlocks from dominating the rounds.
const quickDeadlocks = { deadlock_timeout: '100ms' }

/** Creates and starts a server; `settings` as in postgresql.conf. */
export async function startOwnPostgres(settings: Record<string, string> = {}): Promise<OwnPostgres> {
  return startCluster(await openCluster(join(await makeFolder(), '.kith'), () => {}), settings)
}

/** The URL of several servers, of which each has the data of the first. */
export function urlOfServers(...servers: OwnPostgres[]): string {
  const url = new URL(servers[0]!.url)
  url.searchParams.set('host', servers.map(({ path }) => join(path, 'data')).join())
  return url.href
}

/**
 * Creates a streaming standby of a server and starts both. The primary is stopped while its data are copied. `primary_conninfo` is in a
 * file, so that ALTER SYSTEM can change it.
 */
export async function startStandby({ cluster, ...primary }: OwnPostgres): Promise<OwnPostgres> {
  const data = join(cluster.path, 'data')
  const standby = { ...cluster, path: join(await makeFolder(), 'postgresql') }
  const copy = join(standby.path, 'data')
  const { user, password } = cluster
  await primary.stop()
  await cp(cluster.path, standby.path, { recursive: true })
  await writeFile(join(copy, 'standby.signal'), '')
  const source = `host=${data} port=5432 user=${superuser} password=${password} application_name=standby`
  await appendFile(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
  if (user) await run('chown', ['-R', `${user.uid}:${user.gid}`, standby.path], undefined)
  await run('chmod', ['711', standby.path], undefined)
  await primary.start()
  return startCluster(standby, {
    // Short, because the tests need the standby to cancel reads.
    max_standby_streaming_delay: '200ms',
  })
}

async function startCluster(cluster: Cluster, settings: Record<string, string>): Promise<OwnPostgres> {
  const host = encodeURIComponent(join(cluster.path, 'data'))
  const url = `postgresql://${superuser}:${cluster.password}@localhost:5432/postgres?host=${host}`
  const allSettings = {
    listen_addresses: '',
    unix_socket_directories: '.',
    shared_buffers: '64MB',
    ...quickDeadlocks,
    ...settings,
  }
  const args = [
    '-D',
    join(cluster.path, 'data'),
    ...Object.entries(allSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  let child: ChildProcess | undefined

  async function launch(): Promise<void> {
    const options = { ...cluster.user, cwd: '/', env: cleanEnvironment, stdio: 'ignore' } as const
    child = spawn(cluster.binaries.postgres, args, options)
    while (child.exitCode === null) {
      if (await acceptsConnections(url)) return
      await setTimeout(pollMs)
    }
  }
  const postgres: OwnPostgres = {
    url,
    path: cluster.path,
    cluster,
    start: async () => {
      // The processes of a killed server hold its shared memory for a moment. Until then a new server exits at once.
      for (;;) {
        await launch()
        if (child!.exitCode === null) return
        await setTimeout(pollMs)
      }
    },
    stop: () => end(child!, 'SIGINT'),
    kill: async target => {
      const pids = target === 'all' ? await childrenOf(child!.pid!) : []
      const ended = end(child!, 'SIGKILL')
      for (const pid of pids) signal(pid, 'SIGKILL')
      await ended
    },
    freeze: () => signalAll(child!, 'SIGSTOP'),
    thaw: () => signalAll(child!, 'SIGCONT'),
  }
  await postgres.start()
  return postgres
}

/** Whether a server accepts a login. */
export async function acceptsConnections(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  return client.connect().then(
    () => client.end().then(() => true),
    () =>
      client.end().then(
        () => false,
        () => false,
      ),
  )
}

async function end(child: ChildProcess, name: 'SIGINT' | 'SIGKILL') {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(name)
  await ended
}

/** The processes that a process has started; none if it has ended. */
export async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

/** Signals the server process first, so that it starts no other process meanwhile. */
async function signalAll(child: ChildProcess, name: 'SIGSTOP' | 'SIGCONT') {
  signal(child.pid!, name)
  for (const pid of await childrenOf(child.pid!)) signal(pid, name)
}

/** Signals a process, if it still runs. */
export function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch {
    // The process has already ended.
  }
}
