import { setTimeout } from 'node:timers/promises'
import pg from 'pg'

// A cancel request that arrives between two statements has no effect. The next one follows after this interval.
const cancelIntervalMs = 50
/** A busy server may answer after its client has given up. Then its statement still runs. */
const maxUnanswered = 10
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
 * Cancels the statements of the client's server process, repeatedly, until the client's work has settled and the server has answered.
 * Each attempt sends a CancelRequest message on its own socket. The message needs no login, so a server without free connections accepts it too.
 */
export async function cancelStatements(client: pg.PoolClient, settled: () => boolean): Promise<void> {
  for (let unanswered = 0; unanswered < maxUnanswered; ) {
    const result = await requestCancel(client as unknown as Connected)
    // The server is unreachable: statement_timeout ends the statement there, and the broken connection ends it here.
    if (result === 'unreachable' || (result === 'answered' && settled())) return
    unanswered = result === 'answered' ? 0 : unanswered + 1
    await setTimeout(cancelIntervalMs)
    if (result === 'answered' && settled()) return
  }
}

type CancelConnection = pg.Connection & {
  connect(port: number | string, host?: string): void
  cancel(processId: number, secretKey: number): void
}

/** The server answers by closing the connection. */
type CancelResult = 'answered' | 'silent' | 'unreachable'

function requestCancel({ host, port, processID, secretKey, connectionParameters }: Connected): Promise<CancelResult> {
  return new Promise(resolve => {
    const { ssl, sslnegotiation: sslNegotiation } = connectionParameters
    const connection = new pg.Connection({ ssl, sslNegotiation } as never) as CancelConnection
    let result: CancelResult = 'unreachable'
    const timer = globalThis.setTimeout(() => {
      result = 'silent'
      connection.stream.destroy()
    }, cancelPatienceMs)
    connection.once(ssl ? 'sslconnect' : 'connect', () => {
      result = 'answered'
      connection.cancel(processID, secretKey)
    })
    connection.on('error', () => {})
    connection.once('end', () => {
      clearTimeout(timer)
      resolve(result)
    })
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
    else connection.connect(port, host)
  })
}
