import { resolve } from 'node:path'
import { openCluster } from './embedded/cluster.ts'
import { EmbeddedError } from './embedded/error.ts'
import { explainFullDisk } from './embedded/full-disk.ts'
import { acquireSessionLease, type Purpose } from './embedded/session-lease.ts'

export { EmbeddedError }

/** `url` is that of the database `kith`; `dataDir` is where its data really lie; `up` tells whether it runs. */
export type EmbeddedDatabase = { url: string; dataDir: string; up(): boolean; stop(): Promise<void> }

/**
 * Starts (or adopts) the PostgreSQL of this data folder. purpose 'serve' takes the sole ownership and starts the server
 * again whenever it is lost; 'command' shares a running one. `stop` ends the server unless another kith process uses
 * it; that one ends it then. Rejects when `signal` aborts before the server answers. Throws EmbeddedError with one readable sentence.
 */
export async function startEmbedded(options: {
  dataDir: string
  purpose: Purpose
  log: (line: string) => void
  signal?: AbortSignal
}): Promise<EmbeddedDatabase> {
  const dataDir = resolve(options.dataDir)
  try {
    const cluster = await openCluster(dataDir, options.log)
    const { url, up, leave } = await acquireSessionLease(cluster, options)
    return { url, dataDir: cluster.path, up, stop: leave }
  } catch (cause) {
    const { message } = cause as Error
    const problem =
      cause instanceof EmbeddedError
        ? message
        : `The data folder ${dataDir} cannot be used: ${message}. Set KITH_DATA_DIR to a folder that kith may write to.`
    throw new EmbeddedError(explainFullDisk(problem, dataDir), { cause })
  }
}

/** The URL of another database on the same server. */
export function urlOfDatabase(url: string, name: string): string {
  const other = new URL(url)
  other.pathname = `/${encodeURIComponent(name)}`
  return other.href
}
