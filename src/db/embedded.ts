import { statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import { openCluster } from './embedded/cluster.ts'
import { EmbeddedError } from './embedded/error.ts'
import { explainFullDisk } from './embedded/full-disk.ts'
import { acquireSessionLease, type Purpose } from './embedded/session-lease.ts'

export { EmbeddedError }

/** `url` is the URL of the database `kith`, `dataDir` is the real path of its data, and `up` returns whether it runs. */
export type EmbeddedDatabase = { url: string; dataDir: string; up(): boolean; stop(): Promise<void> }

/**
 * Starts (or adopts) the PostgreSQL of this data folder. The purpose 'serve' takes exclusive ownership, and restarts the server
 * whenever it is lost. The purpose 'command' shares a running server. `stop` ends the server unless another kith process uses
 * it, which then ends it. Rejects when `signal` aborts before the server answers. Throws EmbeddedError with one sentence.
 */
export async function startEmbedded(options: {
  dataDir: string
  purpose: Purpose
  log: (line: string) => void
  signal?: AbortSignal
  /** The memory of a server that this call starts, for pages of data. The default is a quarter of the machine's. */
  sharedBuffersMb?: number
}): Promise<EmbeddedDatabase> {
  const dataDir = resolve(options.dataDir)
  try {
    const { sharedBuffersMb } = options
    const cluster = { ...(await openCluster(dataDir, options.log)), sharedBuffersMb }
    const { url, up, leave } = await acquireSessionLease(cluster, options)
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

/** The bytes that an unprivileged process may still write to the disk of a folder. */
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
