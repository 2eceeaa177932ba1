import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { orMissing } from '../missing-files.ts'
import type { Cluster } from './cluster.ts'
import { EmbeddedError } from './error.ts'
import { canEnter } from './processes.ts'

// The server listens only on a Unix socket, in a folder that only its user can enter: `run` beside the data. The path
// of a socket may have 107 bytes. If it would be longer, the folder is below the system's temporary folder, with
// another name at each start. A file beside the data records the folder. A restarted server therefore listens where its
// clients connect, whichever process restarts it.
const maxPathBytes = 107
const lockName = '.s.PGSQL.5432.lock'

const recordOf = (cluster: Cluster) => join(cluster.path, 'socket')

/** The socket folder of a cluster. Creates it if there is none. */
export async function socketFolder(cluster: Cluster): Promise<string> {
  const fixed = join(cluster.path, 'run')
  if (isShort(fixed) && (await isPrivate(fixed, cluster))) {
    await writeFile(recordOf(cluster), fixed, { mode: 0o600 })
    return fixed
  }
  const recorded = await readRecord(cluster)
  if (recorded !== undefined) {
    if (await isPrivate(recorded, cluster)) return recorded
    await rm(recordOf(cluster), { force: true })
  }
  const created = await makeTemporaryFolder(cluster)
  if (cluster.user) await chown(created, cluster.user.uid, cluster.user.gid)
  try {
    await writeFile(recordOf(cluster), created, { flag: 'wx', mode: 0o600 })
    return created
  } catch (error) {
    await rm(created, { recursive: true })
    // Another start has recorded its folder first.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return socketFolder(cluster)
    throw error
  }
}

/**
 * Deletes the record of the socket folder and returns its path. The caller may remove the folder once no server listens
 * in it.
 */
export async function forgetSocketFolder(cluster: Cluster): Promise<string | undefined> {
  const recorded = await readRecord(cluster)
  await rm(recordOf(cluster), { force: true })
  return recorded
}

const readRecord = (cluster: Cluster): Promise<string | undefined> => orMissing(readFile(recordOf(cluster), 'utf8'))

const isShort = (folder: string) => Buffer.byteLength(join(folder, lockName)) <= maxPathBytes

/**
 * Whether only the server's user can enter the folder. Creates the folder if it does not exist, for example because the
 * system has cleaned it up.
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

async function makeTemporaryFolder({ user }: Cluster): Promise<string> {
  let cause: unknown
  for (const folder of new Set([tmpdir(), '/tmp'])) {
    if (!isShort(join(folder, 'kith-XXXXXX')) || !(await canEnter(user, folder))) continue
    try {
      return await mkdtemp(join(folder, 'kith-'))
    } catch (error) {
      cause = error
    }
  }
  const problem = cause === undefined ? '' : ` (${(cause as Error).message})`
  throw new EmbeddedError(
    `There is no temporary folder that the embedded PostgreSQL can use${problem}. Set TMPDIR to one that kith can write to.`,
    { cause },
  )
}
