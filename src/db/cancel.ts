import { setTimeout } from 'node:timers/promises'
import pg from 'pg'

// A cancel request that arrives between two statements has no effect. The next one follows after this interval.
const cancelIntervalMs = 50
/** After this time without an answer to a cancel request, the server counts as silent. */
export const cancelPatienceMs = 1_000

type Connected = {
  host: string
  port: number
  processID: number
  secretKey: number
  connectionParameters: { ssl?: unknown; sslnegotiation?: unknown }
}

/**
 * Cancels the statements of the client's server process, repeatedly, until the client's work has settled. Each attempt sends a
 * CancelRequest message on its own socket. The message needs no login, so a server without free connections accepts it too.
 */
export async function cancelStatements(client: pg.PoolClient, settled: () => boolean): Promise<void> {
  while (!settled()) {
    const isReached = await requestCancel(client as unknown as Connected)
    // The server is unreachable: statement_timeout ends the statement there, and the broken connection ends it here.
    if (!isReached) return
    await setTimeout(cancelIntervalMs)
  }
}

type CancelConnection = pg.Connection & {
  connect(port: number | string, host?: string): void
  cancel(processId: number, secretKey: number): void
}

/** Resolves when the server closes the connection, which is its answer: true if the request was sent, false if the server was unreachable. */
function requestCancel({ host, port, processID, secretKey, connectionParameters }: Connected): Promise<boolean> {
  return new Promise(resolve => {
    const { ssl, sslnegotiation: sslNegotiation } = connectionParameters
    const connection = new pg.Connection({ ssl, sslNegotiation } as never) as CancelConnection
    const timer = globalThis.setTimeout(() => connection.stream.destroy(), cancelPatienceMs)
    let isSent = false
    connection.once(ssl ? 'sslconnect' : 'connect', () => {
      isSent = true
      connection.cancel(processID, secretKey)
    })
    connection.on('error', () => {})
    connection.once('end', () => {
      clearTimeout(timer)
      resolve(isSent)
    })
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
    else connection.connect(port, host)
  })
}
