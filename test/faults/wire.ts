import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A protocol message from the client to PostgreSQL: its type letter, and its SQL if it has any. */
export type Message = { type: string; text: string | undefined }

/** The decisions of the proxy about messages. */
export type Plan = {
  /** Decides each message before it is forwarded. `cut` sends half of it and resets both connections. */
  onMessage?(message: Message): 'pass' | 'cut' | 'pass and cut'
  /** Decides each COMMIT confirmation of the server. `cut` drops it and resets both connections. */
  onCommitted?(): 'pass' | 'cut'
}

/** A proxy to a PostgreSQL server that parses the client's messages. */
export type Wire = {
  url: string
  plan: Plan
  close(): void
}

const sslRequest = 80877103
const cancelRequest = 80877102

/**
 * Starts a proxy to the server of this URL on a free port. It parses the messages that contain SQL, as described in
 * https://www.postgresql.org/docs/current/protocol-message-formats.html.
 */
export async function openWire(url: string): Promise<Wire> {
  const wire: Wire = { url: '', plan: {}, close }
  const sockets = new Set<Socket>()
  const server = createServer(clientSocket => {
    const serverSocket = connect(targetOf(url))
    const resetBoth = () => {
      clientSocket.resetAndDestroy()
      serverSocket.destroy()
    }
    for (const socket of [clientSocket, serverSocket]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        clientSocket.destroy()
        serverSocket.destroy()
      })
    }
    clientSocket.on(
      'data',
      readMessages(message => forward(message, serverSocket, wire.plan, resetBoth)),
    )
    serverSocket.on('data', (part: Buffer) => {
      const committed = part.includes('COMMIT\0')
      if (committed && wire.plan.onCommitted?.() === 'cut') return resetBoth()
      clientSocket.write(part)
    })
  })
  function close() {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxyUrl = new URL(url)
  proxyUrl.searchParams.delete('host')
  proxyUrl.host = `127.0.0.1:${(server.address() as { port: number }).port}`
  wire.url = proxyUrl.href
  return wire
}

function forward(message: Buffer, serverSocket: Socket, plan: Plan, resetBoth: () => void) {
  const decision = plan.onMessage?.({ type: String.fromCharCode(message[0]!), text: textOf(message) }) ?? 'pass'
  if (serverSocket.destroyed) return
  serverSocket.write(decision === 'cut' ? message.subarray(0, message.length / 2) : message, () => {
    if (decision !== 'pass') resetBoth()
  })
}

/** Splits the received bytes into messages. Startup messages have no type letter, the later ones have one before their length. */
function readMessages(onMessage: (message: Buffer) => void) {
  let remaining = Buffer.alloc(0)
  let isStarted = false
  return (part: Buffer) => {
    remaining = Buffer.concat([remaining, part])
    for (;;) {
      const headerLength = isStarted ? 5 : 4
      if (remaining.length < headerLength) return
      const length = remaining.readUInt32BE(headerLength - 4) + headerLength - 4
      if (remaining.length < length) return
      const message = remaining.subarray(0, length)
      remaining = remaining.subarray(length)
      if (!isStarted) isStarted = ![sslRequest, cancelRequest].includes(message.readUInt32BE(4))
      onMessage(message)
    }
  }
}

/** Returns the SQL of a Query or Parse message; undefined for others. */
function textOf(message: Buffer): string | undefined {
  const type = String.fromCharCode(message[0]!)
  if (type === 'Q') return message.toString('utf8', 5, message.length - 1)
  if (type !== 'P') return undefined
  const start = message.indexOf(0, 5) + 1
  return message.toString('utf8', start, message.indexOf(0, start))
}

function targetOf(url: string) {
  const { searchParams, hostname, port } = new URL(url)
  const socketDir = searchParams.get('host')
  const number = Number(port || 5432)
  return socketDir ? { path: `${socketDir}/.s.PGSQL.${number}` } : { host: hostname, port: number }
}
