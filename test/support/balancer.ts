import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A balancer in front of services, as simple as they come: it hands each connection on to a service that is ready. */
export type Balancer = {
  address: string
  /** The services it hands on to, by address. */
  services: Set<string>
  /** Those of them that were ready when asked last. */
  ready: ReadonlySet<string>
  stop(): Promise<void>
}

const look_interval_ms = 100

/** Asks each service's /readyz again and again, and takes turns among those that answer 200. It knows nothing of HTTP else. */
export async function startBalancer(): Promise<Balancer> {
  const services = new Set<string>()
  const ready = new Set<string>()
  const sockets = new Set<Socket>()
  let turns = 0

  const look = async (address: string) => {
    const is_ready = await fetch(`${address}/readyz`, { headers: { Connection: 'close' } }).then(
      ({ ok }) => ok,
      () => false,
    )
    if (is_ready && services.has(address)) ready.add(address)
    else ready.delete(address)
  }
  const looking = setInterval(() => {
    for (const address of [...services, ...ready]) void look(address)
  }, look_interval_ms)

  const server = createServer({ allowHalfOpen: true }, socket => {
    turns += 1
    const { hostname, port } = new URL([...ready][turns % ready.size] ?? 'http://127.0.0.1:1')
    const behind = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
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
