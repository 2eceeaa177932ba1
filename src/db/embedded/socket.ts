import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { canEnter } from './processes.ts'

// The server listens on a Unix socket alone, in a folder that only its user enters. The path may have 107 bytes, so
// the folder lies below the system's temporary one; a file beside the data remembers it, so that a server started
// anew, by whomever, listens where its clients look for it.
const longestPathBytes = 107
const nameTemplate = 'kith-XXXXXX/.s.PGSQL.5432.lock'

const recordOf = (cluster: Cluster) => join(cluster.path, 'socket')

/** The socket folder of a cluster, made when there is none. */
export async function socketFolder(cluster: Cluster): Promise<string> {
  const known = await readRecord(cluster)
  if (known !== undefined) {
    if (await isPrivate(known, cluster)) return known
    await rm(recordOf(cluster), { force: true })
  }
  const made = await mkdtemp(join(await temporaryFolder(cluster), 'kith-'))
  if (cluster.user) await chown(made, cluster.user.uid, cluster.user.gid)
  try {
    await writeFile(recordOf(cluster), made, { flag: 'wx', mode: 0o600 })
    return made
  } catch (error) {
    await rm(made, { recursive: true })
    // Another start wrote it down first.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return socketFolder(cluster)
    throw error
  }
}

/** Forgets the folder and returns it; it may be removed when no server is in it any more. */
export async function forgetSocketFolder(cluster: Cluster): Promise<string | undefined> {
  const known = await readRecord(cluster)
  await rm(recordOf(cluster), { force: true })
  return known
}

async function readRecord(cluster: Cluster): Promise<string | undefined> {
  try {
    return await readFile(recordOf(cluster), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Whether the folder is the server's alone. One that the system cleaned away is made again: clients know its path.
 */
async function isPrivate(folder: string, { user }: Cluster): Promise<boolean> {
  const uid = user?.uid ?? process.getuid?.()
  if (!(await lstat(folder).catch(() => undefined))) {
    await mkdir(folder, { mode: 0o700 }).catch(() => {})
    await chmod(folder, 0o700).catch(() => {})
    if (user) await chown(folder, user.uid, user.gid).catch(() => {})
  }
  const found = await lstat(folder).catch(() => undefined)
  return found?.isDirectory() === true && found.uid === uid && (found.mode & 0o077) === 0
}

async function temporaryFolder({ user }: Cluster): Promise<string> {
  for (const folder of [tmpdir(), '/tmp'])
    if (Buffer.byteLength(join(folder, nameTemplate)) <= longestPathBytes && (await canEnter(user, folder)))
      return folder
  throw new EmbeddedError('There is no temporary folder that the embedded PostgreSQL can reach; set TMPDIR to one.')
}
