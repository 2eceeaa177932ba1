import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, openCluster, superuser } from '../../src/db/embedded/cluster.ts'
import { cleanEnvironment, run } from '../../src/db/embedded/processes.ts'
import { makeFolder } from '../support/process.ts'

/** A PostgreSQL of the test's own, to be killed, frozen and started again at one address. */
export type OwnPostgres = {
  url: string
  /** The server's data lie below. */
  path: string
  cluster: Cluster
  start(): Promise<void>
  /** SIGINT, as `pg_ctl restart` sends it: running statements are ended. Resolves when it has ended. */
  stop(): Promise<void>
  /** kill -9 of the server process alone, or of its other processes too. */
  kill(whom: 'postmaster' | 'all'): Promise<void>
  /** SIGSTOP of every process, as on a machine that stands still. */
  freeze(): Promise<void>
  thaw(): Promise<void>
}

const pollMs = 20
// Few names and many renames deadlock, and the rounds are not about that.
const quickDeadlocks = { deadlock_timeout: '100ms' }

/** Makes one and starts it; `settings` as in postgresql.conf. */
export async function startOwnPostgres(settings: Record<string, string> = {}): Promise<OwnPostgres> {
  return startCluster(await openCluster(join(await makeFolder(), '.kith'), () => {}), settings)
}

/** Makes a streaming standby of a server, which is stopped for as long as its data are copied, and starts both. */
export async function startStandby({ cluster, ...primary }: OwnPostgres): Promise<OwnPostgres> {
  const data = join(cluster.path, 'data')
  const standby = { ...cluster, path: join(await makeFolder(), 'postgresql') }
  const copy = join(standby.path, 'data')
  await primary.stop()
  await cp(cluster.path, standby.path, { recursive: true })
  await writeFile(join(copy, 'standby.signal'), '')
  const { user, password } = cluster
  if (user) await run('chown', ['-R', `${user.uid}:${user.gid}`, standby.path], undefined)
  await run('chmod', ['711', standby.path], undefined)
  await primary.start()
  return startCluster(standby, {
    primary_conninfo: `host=${data} port=5432 user=${superuser} password=${password}`,
    // A read must not wait for long: it is what the standby cancels it for that is tested.
    max_standby_streaming_delay: '200ms',
  })
}

async function startCluster(cluster: Cluster, settings: Record<string, string>): Promise<OwnPostgres> {
  const host = encodeURIComponent(join(cluster.path, 'data'))
  const url = `postgresql://${superuser}:${cluster.password}@localhost:5432/postgres?host=${host}`
  const all = {
    listen_addresses: '',
    unix_socket_directories: '.',
    shared_buffers: '64MB',
    ...quickDeadlocks,
    ...settings,
  }
  const words = [
    '-D',
    join(cluster.path, 'data'),
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  let child: ChildProcess | undefined

  async function launch(): Promise<void> {
    const options = { ...cluster.user, cwd: '/', env: cleanEnvironment, stdio: 'ignore' } as const
    child = spawn(cluster.binaries.postgres, words, options)
    while (child.exitCode === null) {
      if (await answers(url)) return
      await setTimeout(pollMs)
    }
  }
  const own: OwnPostgres = {
    url,
    path: cluster.path,
    cluster,
    start: async () => {
      // The processes of one that was killed hold its memory for a moment: until then the new one ends at once.
      for (;;) {
        await launch()
        if (child!.exitCode === null) return
        await setTimeout(pollMs)
      }
    },
    stop: () => end(child!, 'SIGINT'),
    kill: async whom => {
      const pids = whom === 'all' ? await childrenOf(child!.pid!) : []
      const ended = end(child!, 'SIGKILL')
      for (const pid of pids) signal(pid, 'SIGKILL')
      await ended
    },
    freeze: () => signalAll(child!, 'SIGSTOP'),
    thaw: () => signalAll(child!, 'SIGCONT'),
  }
  await own.start()
  return own
}

async function answers(url: string): Promise<boolean> {
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

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

/** The server process first, so that it starts no other meanwhile. */
async function signalAll(child: ChildProcess, name: 'SIGSTOP' | 'SIGCONT') {
  signal(child.pid!, name)
  for (const pid of await childrenOf(child.pid!)) signal(pid, name)
}

function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended by itself.
  }
}
