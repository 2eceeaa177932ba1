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
const needed = ['initdb', 'postgres', 'psql', 'createdb', 'pg_dump', 'pg_restore', 'pg_basebackup', 'pg_verifybackup']

/**
 * Where the newest of Debian's PostgreSQL lies that has server and client programs; undefined where its package is not
 * installed. The embedded PostgreSQL comes without the client programs, and they have to be of the server's version.
 */
export const programs: string | undefined = (existsSync(debianFolder) ? readdirSync(debianFolder) : [])
  .sort((left, right) => Number(right) - Number(left))
  .map(version => join(debianFolder, version, 'bin'))
  .find(folder => needed.every(name => existsSync(join(folder, name))))

/** Folders that the servers' user writes to: root's servers run as another. */
export type Ground = { folder: string; user: ServerUser }

/** A running server of the test's own; `url` names its database `kith`, which may not be there yet. */
export type Server = { data: string; url: string; adminUrl: string; child: ChildProcess }

const running: ChildProcess[] = []

export async function makeGround(): Promise<Ground> {
  const folder = join(await makeFolder(), 'ground')
  const user = await unprivilegedUser()
  await mkdir(folder, { mode: 0o711 })
  if (user) await chown(folder, user.uid, user.gid)
  return { folder, user }
}

/** Runs shell lines as the servers' user, with Debian's programs first on the path; answers what they printed. */
export async function runLines(ground: Ground, lines: string, environment: Record<string, string> = {}) {
  const env = { PATH: `${programs}:/usr/bin:/bin`, HOME: ground.folder, ...environment }
  const shell = spawn('sh', ['-eu'], { ...ground.user, cwd: ground.folder, env })
  shell.stdin.end(lines)
  const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  if (shell.exitCode !== 0) throw new Error(`ended with ${shell.exitCode}: ${stdout}${stderr}\nwhile running\n${lines}`)
  return stdout.trim()
}

/** Makes an empty cluster below the ground; `settings` are lines of its postgresql.conf. */
export async function initialise(ground: Ground, name: string, settings = ''): Promise<string> {
  const data = join(ground.folder, name)
  await runLines(ground, `initdb --pgdata="${data}" --username=kith --auth=trust --encoding=UTF8 --locale=C`)
  await appendFile(join(data, 'postgresql.conf'), `\n${settings}\n`)
  return data
}

/** Starts the server of a cluster on a socket of its own, and waits until it takes writes. */
export async function start(ground: Ground, data: string): Promise<Server> {
  const socketDir = `${data}.s`
  await runLines(ground, `mkdir -p -m 700 "${socketDir}"`)
  const args = ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${socketDir}`]
  const child = spawn(join(programs!, 'postgres'), args, {
    ...ground.user,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  const said = text(child.stderr)
  const urlOf = (database: string) =>
    `postgresql://kith@localhost:5432/${database}?host=${encodeURIComponent(socketDir)}`
  const ended = once(child, 'exit').then(async ([code]) => {
    throw new Error(`PostgreSQL ended with ${code}: ${await said}`)
  })
  ended.catch(() => {})
  await Promise.race([ended, outOfRecovery(urlOf('postgres'))])
  return { data, url: urlOf('kith'), adminUrl: urlOf('postgres'), child }
}

async function outOfRecovery(url: string) {
  for (;;) {
    const [row] = await queryOnceUp(url, 'select pg_is_in_recovery() as recovering')
    if (row?.recovering === false) return
  }
}

/** Ends a server at once, as a power failure would: nothing is written any more. */
export async function crash({ child }: Pick<Server, 'child'>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGQUIT')
  await exit
}

/** Ends whatever the file's tests have left running. */
export async function endServers(): Promise<void> {
  for (const child of running.splice(0)) await crash({ child })
}
