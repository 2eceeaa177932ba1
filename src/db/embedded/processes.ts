import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'

/** Whom the server's processes run as; absent: as ourselves. */
export type ServerUser = { uid: number; gid: number } | undefined

/** All that the server's programs see of the environment: no PGDATA, PGPORT or LD_* of the caller. */
export const cleanEnvironment = { LC_ALL: 'C', PATH: '/usr/local/bin:/usr/bin:/bin' }

/** Runs a program to its end, as `user`, from `/`. `output` is what it printed, or why it could not run. */
export function run(file: string, args: string[], user: ServerUser): Promise<{ ok: boolean; output: string }> {
  return new Promise(resolve => {
    execFile(file, args, { ...user, cwd: '/', env: cleanEnvironment }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') }),
    )
  })
}

/** Whether `user` can enter the folder, with every folder above it. */
export async function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  return user === undefined || (await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], user)).ok
}

/**
 * A process's program and arguments, joined by spaces; empty when there is none or when it is a zombie.
 * Anybody may read it, while `/proc/<pid>/cwd` of another user's process is closed to root inside most containers.
 */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform !== 'linux') {
    const { ok, output } = await run('/bin/ps', ['-o', 'command=', '-p', String(pid)], undefined)
    return ok ? output : ''
  }
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text.replaceAll('\0', ' ').trim()
}

/** The user that root runs the server as, since PostgreSQL refuses root: `postgres`, else `nobody`. */
export async function unprivilegedUser(): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const uid = await run('id', ['-u', name], undefined)
    const gid = await run('id', ['-g', name], undefined)
    if (uid.ok && gid.ok) return { uid: Number(uid.output), gid: Number(gid.output) }
  }
  return undefined
}
