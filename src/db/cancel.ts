import { setTimeout } from 'node:timers/promises'
import pg from 'pg'

// A cancel request that arrives between two statements hits nothing; the next one comes this soon.
const cancelIntervalMs = 50
/** A server that has not answered a cancel request after this is taken for silent. */
export const cancelPatienceMs = 1_000

type Connected = {
  host: string
  port: number
  processID: number
  secretKey: number
  connectionParameters: { ssl?: unknown; sslnegotiation?: unknown }
}

/**
 * Cancels whatever the client's server process runs, again and again until the client's work has settled. Each is a
 * CancelRequest of the protocol on a socket of its own: it needs no login, so a server that is full takes it too.
 */
export async function cancelStatements(client: pg.PoolClient, settled: () => boolean): Promise<void> {
  while (!settled()) {
    const reached = await requestCancel(client as unknown as Connected)
    // The server is away: statement_timeout ends the statement there, the broken connection ends it here.
    if (!reached) return
    await setTimeout(cancelIntervalMs)
  }
}

type Wire = pg.Connection & {
  connect(port: number | string, host?: string): void
  cancel(processId: number, secretKey: number): void
}

/** Settles when the server has closed the connection, which is its answer. False where it could not be reached. */
function requestCancel({ host, port, processID, secretKey, connectionParameters }: Connected): Promise<boolean> {
  return new Promise(resolve => {
    const { ssl, sslnegotiation: sslNegotiation } = connectionParameters
    const wire = new pg.Connection({ ssl, sslNegotiation } as never) as Wire
    const silent = globalThis.setTimeout(() => wire.stream.destroy(), cancelPatienceMs)
    let sent = false
    wire.once(ssl ? 'sslconnect' : 'connect', () => {
      sent = true
      wire.cancel(processID, secretKey)
    })
    wire.on('error', () => {})
    wire.once('end', () => {
      clearTimeout(silent)
      resolve(sent)
    })
    if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`)
    else wire.connect(port, host)
  })
}
