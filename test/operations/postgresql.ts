import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { appendFile, chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type ServerUser, unprivilegedUser } from '../../src/db/embedded/processes.ts'
import { queryOnceUp } from '../support/embedded-service.ts'
import { makeFolder } from '../support/process.ts'

const debianFolder = '/usr/lib/postgresql'
const requiredPrograms = [
  'initdb',
  'postgres',
  'psql',
  'createdb',
  'pg_dump',
  'pg_restore',
  'pg_basebackup',
  'pg_verifybackup',
]

/**
 * The folder of the newest Debian PostgreSQL with server and client programs. Undefined if none is installed. The
 * embedded PostgreSQL has no client programs, and their version has to match the server's.
 */
export const programFolder: string | undefined = (existsSync(debianFolder) ? readdirSync(debianFolder) : [])
  .sort((left, right) => Number(right) - Number(left))
  .map(version => join(debianFolder, version, 'bin'))
  .find(folder => requiredPrograms.every(name => existsSync(join(folder, name))))

/** A folder that the servers' user can write to. PostgreSQL refuses to run as root, so root runs it as another user. */
export type ClusterFolder = { folder: string; user: ServerUser }

/** A running server of a test. `url` names its database `kith`, which may not exist yet. */
export type Server = { data: string; url: string; adminUrl: string; child: ChildProcess }

const running: ChildProcess[] = []

/** Creates the folder inside a temporary one, which is removed after the tests. */
export async function createClusterFolder(): Promise<ClusterFolder> {
  const folder = join(await makeFolder(), 'clusters')
  const user = await unprivilegedUser()
  await mkdir(folder, { mode: 0o711 })
  if (user) await chown(folder, user.uid, user.gid)
  return { folder, user }
}

/**
 * Runs shell lines as the servers' user, with Debian's programs first on the path. Returns their standard output;
 * throws if they fail.
 */
export async function runLines(clusters: ClusterFolder, lines: string, environment: Record<string, string> = {}) {
  const env = { PATH: `${programFolder}:/usr/bin:/bin`, HOME: clusters.folder, ...environment }
  const shell = spawn('sh', ['-eu'], { ...clusters.user, cwd: clusters.folder, env })
  shell.stdin.end(lines)
  const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  if (shell.exitCode !== 0)
    throw new Error(`exited with ${shell.exitCode}: ${stdout}${stderr}\nwhile running\n${lines}`)
  return stdout.trim()
}

/** Creates an empty cluster in the folder. `settings` are lines of its postgresql.conf. Returns the data directory. */
export async function createCluster(clusters: ClusterFolder, name: string, settings = ''): Promise<string> {
  const data = join(clusters.folder, name)
  await runLines(clusters, `initdb --pgdata="${data}" --username=kith --auth=trust --encoding=UTF8 --locale=C`)
  await appendFile(join(data, 'postgresql.conf'), `\n${settings}\n`)
  return data
}

/** Starts the server of a cluster on its own socket, and waits until it takes writes. Throws if it exits before. */
export async function startServer(clusters: ClusterFolder, data: string): Promise<Server> {
  const socketDir = `${data}.s`
  await runLines(clusters, `mkdir -p -m 700 "${socketDir}"`)
  const args = ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${socketDir}`]
  const child = spawn(join(programFolder!, 'postgres'), args, {
    ...clusters.user,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  const stderr = text(child.stderr)
  const urlOf = (database: string) =>
    `postgresql://kith@localhost:5432/${database}?host=${encodeURIComponent(socketDir)}`
  const ended = once(child, 'exit').then(async ([code]) => {
    throw new Error(`PostgreSQL exited with ${code}: ${await stderr}`)
  })
  ended.catch(() => {})
  await Promise.race([ended, waitForRecovery(urlOf('postgres'))])
  return { data, url: urlOf('kith'), adminUrl: urlOf('postgres'), child }
}

async function waitForRecovery(url: string) {
  for (;;) {
    const [row] = await queryOnceUp(url, 'select pg_is_in_recovery() as recovering')
    if (row?.recovering === false) return
  }
}

/** Stops a server immediately, without a checkpoint, as a power failure would. */
export async function crash({ child }: Pick<Server, 'child'>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGQUIT')
  await exit
}

/** Stops all servers that the tests of the file left running. */
export async function endServers(): Promise<void> {
  for (const child of running.splice(0)) await crash({ child })
}
