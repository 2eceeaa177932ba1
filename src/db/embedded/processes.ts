import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'

/** The user of the server's processes. Undefined is the user of this process. */
export type ServerUser = { uid: number; gid: number } | undefined

/** The complete environment of the server's programs. It has no PGDATA, PGPORT or LD_* of the caller. */
export const cleanEnvironment = { LC_ALL: 'C', PATH: '/usr/local/bin:/usr/bin:/bin' }

/** Runs a program to its end as `user`, in `/`. `output` is its output, or the reason why it could not run. */
export function run(file: string, args: string[], user: ServerUser): Promise<{ ok: boolean; output: string }> {
  return new Promise(resolve => {
    execFile(file, args, { ...user, cwd: '/', env: cleanEnvironment }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') }),
    )
  })
}

/** Whether `user` can enter the folder and all folders above it. */
export async function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  return user === undefined || (await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], user)).ok
}

/**
 * The program and arguments of a process, joined by spaces. Empty if the process does not exist or is a zombie. Every
 * user can read it, whereas in most containers not even root can read `/proc/<pid>/cwd` of another user's process.
 */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform !== 'linux') {
    const { ok, output } = await run('/bin/ps', ['-o', 'command=', '-p', String(pid)], undefined)
    return ok ? output : ''
  }
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text.replaceAll('\0', ' ').trim()
}

/** The user that runs the server if this process is root, which PostgreSQL refuses: `postgres`, or else `nobody`. */
export async function unprivilegedUser(): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const uid = await run('id', ['-u', name], undefined)
    const gid = await run('id', ['-g', name], undefined)
    if (uid.ok && gid.ok) return { uid: Number(uid.output), gid: Number(gid.output) }
  }
  return undefined
}
