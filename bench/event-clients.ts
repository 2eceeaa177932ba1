import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'

// Many clients of server-sent events in a process of their own: they count what they receive, and parse nothing. It prints one line
// when all streams are open, ends on SIGTERM, and then prints how many bytes they received.

const { values } = parseArgs({
  options: { address: { type: 'string' }, query: { type: 'string' }, clients: { type: 'string' } },
})
const { hostname, port } = new URL(values.address!)
const head = `GET /v1/changes?${values.query} HTTP/1.1\r
Host: ${hostname}:${port}\r
Authorization: Bearer ${process.env.TOKEN}\r
Accept: text/event-stream\r
\r
`

let bytes = 0
let closed = 0

/** Opens a stream. Resolves with the status line of its response. */
async function open(): Promise<string> {
  const socket: Socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {})
  socket.on('close', () => {
    closed += 1
  })
  socket.write(head)
  const closing = once(socket, 'close').then(() => [Buffer.from('The connection closed.')])
  const [first] = (await Promise.race([once(socket, 'data'), closing])) as [Buffer]
  socket.on('data', part => {
    bytes += part.length
  })
  return first.toString('latin1').split('\r\n', 1)[0]!
}

process.once('SIGTERM', () => {
  process.stdout.write(`${JSON.stringify({ bytes, closed })}\n`, () => process.exit())
})
const startedMs = performance.now()
const statuses = await Promise.all(Array.from({ length: Number(values.clients) }, open))
const refused = statuses.filter(status => status !== 'HTTP/1.1 200 OK')
const tookMs = Math.round(performance.now() - startedMs)
process.stdout.write(`${JSON.stringify({ opened: statuses.length - refused.length, tookMs, refused: refused[0] })}\n`)
