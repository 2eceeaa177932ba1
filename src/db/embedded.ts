import { statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isArchiving, setArchiving } from './embedded/archiving.ts'
import { type Cluster, openCluster } from './embedded/cluster.ts'
import { EmbeddedError, explainFullDisk } from './embedded/error.ts'
import { acquireSessionLease, type Purpose, type SessionLease } from './embedded/session-lease.ts'

export { EmbeddedError }

/**
 * `url` is the URL of the database `kith`, `dataDir` is the real path of its data, and `up` returns whether the server
 * runs.
 */
export type EmbeddedDatabase = { url: string; dataDir: string; up(): boolean; stop(): Promise<void> }

/**
 * Starts (or adopts) the PostgreSQL of this data folder. The purpose 'serve' takes exclusive ownership, and restarts
 * the server whenever it is lost. The purpose 'command' shares a running server. `stop` ends the server unless another
 * kith process uses it, which then ends it. Rejects when `signal` aborts before the server answers. Throws
 * EmbeddedError with one sentence.
 */
export async function startEmbedded(options: {
  dataDir: string
  purpose: Purpose
  log: (line: string) => void
  signal?: AbortSignal
  /**
   * Whether the server of the purpose 'serve' keeps its log until it is archived. A start by another process keeps the
   * choice of the last service.
   */
  archives?: boolean
  /** The memory for data pages of a server that this call starts. The default is a quarter of the machine's memory. */
  sharedBuffersMb?: number
}): Promise<EmbeddedDatabase> {
  const dataDir = resolve(options.dataDir)
  try {
    const { sharedBuffersMb } = options
    const cluster = { ...(await openCluster(dataDir, options.log)), sharedBuffersMb }
    const lease = await acquireSessionLease(cluster, options)
    const { url, up, leave } = options.purpose === 'serve' ? await changeArchiving(lease, cluster, options) : lease
    return { url, dataDir: cluster.path, up, stop: leave }
  } catch (cause) {
    const { message } = cause as Error
    const problem =
      cause instanceof EmbeddedError
        ? message
        : `The data folder ${dataDir} cannot be used: ${message}. Set KITH_DATA_DIR to a folder that kith can write to.`
    throw new EmbeddedError(explainFullDisk(problem, dataDir), { cause })
  }
}

/** Restarts the server if its archiving has to begin or end. Only the owner of the data folder does so. */
async function changeArchiving(
  lease: SessionLease,
  cluster: Cluster,
  options: Parameters<typeof acquireSessionLease>[1] & { archives?: boolean },
): Promise<SessionLease> {
  const { archives = false } = options
  if ((await isArchiving(lease.url, cluster.path)) === archives) return lease
  await setArchiving(cluster.path, archives)
  await lease.leave()
  const restarted = await acquireSessionLease(cluster, options)
  if ((await isArchiving(restarted.url, cluster.path)) === archives) return restarted
  await restarted.leave()
  throw new EmbeddedError(
    `The embedded PostgreSQL in ${cluster.path} has to restart with the changed KITH_ARCHIVE, but another kith process uses it. End that process and start again.`,
  )
}

/** The number of bytes that an unprivileged process can still write to the disk of a folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** The URL of another database on the same server. */
export function urlOfDatabase(url: string, name: string): string {
  const other = new URL(url)
  other.pathname = `/${encodeURIComponent(name)}`
  return other.href
}
