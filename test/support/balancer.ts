import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { setTimeout } from 'node:timers/promises'

/** A minimal load balancer in front of services. */
export type Balancer = {
  address: string
  /** The addresses of all services. */
  services: Set<string>
  /** The addresses of the services that were ready at the last check. */
  ready: ReadonlySet<string>
  stop(): Promise<void>
}

const checkIntervalMs = 100

/**
 * Starts a balancer that polls each service's /readyz every 100 ms and takes turns among those that return 200. With
 * `connection` it balances TCP connections without knowledge of HTTP. With `request` it is an HTTP proxy that keeps its
 * own connections alive.
 */
export async function startBalancer(per: 'connection' | 'request'): Promise<Balancer> {
  const services = new Set<string>()
  const ready = new Set<string>()
  const sockets = new Set<Socket>()
  let turns = 0

  const checkReadiness = async (address: string) => {
    const isReady = await fetch(`${address}/readyz`, { headers: { Connection: 'close' } }).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady && services.has(address)) ready.add(address)
    else ready.delete(address)
  }
  const checkTimer = setInterval(() => {
    for (const address of [...services, ...ready]) void checkReadiness(address)
  }, checkIntervalMs)

  // While a database stalls, no service is ready. Connections and requests wait meanwhile.
  const chooseService = async () => {
    while (ready.size === 0) await setTimeout(checkIntervalMs, undefined, { ref: false })
    turns += 1
    const { hostname, port } = new URL([...ready][turns % ready.size]!)
    return { host: hostname, port: Number(port) }
  }
  const server = per === 'connection' ? createTcpBalancer(chooseService, sockets) : createHttpProxy(chooseService)
  server.on('connection', socket => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    services,
    ready,
    stop: async () => {
      clearInterval(checkTimer)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

type Target = { host: string; port: number }

function createTcpBalancer(chooseService: () => Promise<Target>, sockets: Set<Socket>): Server {
  return createServer({ allowHalfOpen: true }, async socket => {
    const upstream = connect({ ...(await chooseService()), allowHalfOpen: true })
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one)
      one.once('close', () => sockets.delete(one))
      // An error on one side resets the connection on the other.
      one.on('error', () => other.resetAndDestroy())
      one.pipe(other)
    }
  })
}

function createHttpProxy(chooseService: () => Promise<Target>): Server {
  const agent = new http.Agent({ keepAlive: true })
  const forward = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url, headers } = request
    const upstream = http.request({ ...(await chooseService()), agent, method, path: url, headers })
    upstream.on('response', answer => {
      const { connection: _, 'keep-alive': __, ...forwardedHeaders } = answer.headers
      response.writeHead(answer.statusCode!, forwardedHeaders)
      pipeline(answer, response, () => {})
    })
    upstream.on('error', () => response.destroy())
    pipeline(request, upstream, () => {})
  }
  return http.createServer(forward).once('close', () => agent.destroy())
}
