import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout } from 'node:timers/promises'

/** A balancer in front of services, as simple as they come. */
export type Balancer = {
  address: string
  /** The services it hands on to, by address. */
  services: Set<string>
  /** Those of them that were ready when asked last. */
  ready: ReadonlySet<string>
  stop(): Promise<void>
}

const lookIntervalMs = 100

/**
 * Asks each service's /readyz again and again, and takes turns among those that answer 200: with each connection, knowing
 * nothing of HTTP, or as a proxy with each request, over connections of its own that it keeps.
 */
export async function startBalancer(per: 'connection' | 'request'): Promise<Balancer> {
  const services = new Set<string>()
  const ready = new Set<string>()
  const sockets = new Set<Socket>()
  let turns = 0

  const look = async (address: string) => {
    const isReady = await fetch(`${address}/readyz`, { headers: { Connection: 'close' } }).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady && services.has(address)) ready.add(address)
    else ready.delete(address)
  }
  const looking = setInterval(() => {
    for (const address of [...services, ...ready]) void look(address)
  }, lookIntervalMs)

  // A database that stalls leaves no service ready for a moment: what arrives then waits.
  const choose = async () => {
    while (ready.size === 0) await setTimeout(lookIntervalMs, undefined, { ref: false })
    turns += 1
    const { hostname, port } = new URL([...ready][turns % ready.size]!)
    return { host: hostname, port: Number(port) }
  }
  const server = per === 'connection' ? handConnectionsOn(choose, sockets) : handRequestsOn(choose)
  server.on('connection', socket => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    services,
    ready,
    stop: async () => {
      clearInterval(looking)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

type Target = { host: string; port: number }

function handConnectionsOn(choose: () => Promise<Target>, sockets: Set<Socket>): Server {
  return createServer({ allowHalfOpen: true }, async socket => {
    const behind = connect({ ...(await choose()), allowHalfOpen: true })
    for (const [one, other] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      sockets.add(one)
      one.once('close', () => sockets.delete(one))
      // What is cut off on one side is cut off on the other.
      one.on('error', () => other.resetAndDestroy())
      one.pipe(other)
    }
  })
}

function handRequestsOn(choose: () => Promise<Target>): Server {
  const agent = new http.Agent({ keepAlive: true })
  const handOn = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url, headers } = request
    const behind = http.request({ ...(await choose()), agent, method, path: url, headers })
    behind.on('response', answer => {
      const { connection: _, 'keep-alive': __, ...kept } = answer.headers
      response.writeHead(answer.statusCode!, kept)
      pipeline(answer, response, () => {})
    })
    behind.on('error', () => response.destroy())
    pipeline(request, behind, () => {})
  }
  return http.createServer(handOn).once('close', () => agent.destroy())
}
