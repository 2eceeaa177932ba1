import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** What a client sends to PostgreSQL: a message of the protocol by its letter, and its SQL where it has any. */
export type Message = { type: string; text: string | undefined }

/** What happens on the line. */
export type Plan = {
  /** Asked of each message before it goes on: `cut` sends half of it and resets both ends. */
  onMessage?(message: Message): 'pass' | 'cut' | 'pass and cut'
  /** Asked when the server says that it has committed: `cut` keeps that to itself and resets both ends. */
  onCommitted?(): 'pass' | 'cut'
}

/** A way to a PostgreSQL server that reads along. */
export type Wire = {
  url: string
  plan: Plan
  close(): void
}

const sslRequest = 80877103
const cancelRequest = 80877102

/**
 * Opens a way to the server of this URL, on a port of its own. It knows the messages of
 * https://www.postgresql.org/docs/current/protocol-message-formats.html as far as they carry SQL.
 */
export async function openWire(url: string): Promise<Wire> {
  const wire: Wire = { url: '', plan: {}, close }
  const ends = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(targetOf(url))
    const cut = () => {
      near.resetAndDestroy()
      far.destroy()
    }
    for (const end of [near, far]) {
      ends.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        ends.delete(end)
        near.destroy()
        far.destroy()
      })
    }
    near.on(
      'data',
      readMessages(message => forward(message, far, wire.plan, cut)),
    )
    far.on('data', (part: Buffer) => {
      const committed = part.includes('COMMIT\0')
      if (committed && wire.plan.onCommitted?.() === 'cut') return cut()
      near.write(part)
    })
  })
  function close() {
    server.close()
    for (const end of ends) end.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const through = new URL(url)
  through.searchParams.delete('host')
  through.host = `127.0.0.1:${(server.address() as { port: number }).port}`
  wire.url = through.href
  return wire
}

function forward(message: Buffer, far: Socket, plan: Plan, cut: () => void) {
  const decision = plan.onMessage?.({ type: String.fromCharCode(message[0]!), text: textOf(message) }) ?? 'pass'
  if (far.destroyed) return
  far.write(decision === 'cut' ? message.subarray(0, message.length / 2) : message, () => {
    if (decision !== 'pass') cut()
  })
}

/** Cuts what arrives into messages: the first has no type, the others have one letter before their length. */
function readMessages(take: (message: Buffer) => void) {
  let rest = Buffer.alloc(0)
  let greeted = false
  return (part: Buffer) => {
    rest = Buffer.concat([rest, part])
    for (;;) {
      const head = greeted ? 5 : 4
      if (rest.length < head) return
      const length = rest.readUInt32BE(head - 4) + head - 4
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      if (!greeted) greeted = ![sslRequest, cancelRequest].includes(message.readUInt32BE(4))
      take(message)
    }
  }
}

/** The SQL of a Query or a Parse. */
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
