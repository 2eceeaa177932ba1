import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net'

/** Where a server is reached, and what ends it there. */
export type Listening = AddressInfo & { close(): Promise<void> }

type Place = { host: string; port: number }

/** Connections that wait to be accepted. Past Node's 511, one that comes in a rush is tried again by its client a second later. */
const backlog = 4_096

/**
 * libuv accepts one connection of a listening socket in a turn of its loop, and a turn serves everybody who has something
 * to say: of a thousand that came to a busy server at once the last was heard after three seconds, with 16 sockets within one.
 */
const sockets = 16

/** Has a server listen, on several sockets of one port where that can be done. Rejects with what the system says. */
export async function listen(server: HttpServer, place: Place): Promise<Listening> {
  // Workers are handed their connections by a process that does nothing else.
  const several = process.platform === 'linux' && cluster.isPrimary
  if (!several) {
    await listenOn(server, { ...place, backlog })
    return { ...(server.address() as AddressInfo), close: () => close([server]) }
  }
  // These sockets would share a port with those of another process of ours, too, and nobody would be told.
  const letGo = place.port === 0 ? async () => {} : await takeAlone(place)
  try {
    return await listenOften(server, place)
  } finally {
    await letGo()
  }
}

async function listenOften(server: HttpServer, place: Place): Promise<Listening> {
  await listenOn(server, { ...place, backlog, reusePort: true })
  const { address: host, family, port } = server.address() as AddressInfo
  // What Node's own servers listen with.
  const as_it = { allowHalfOpen: !(server instanceof HttpsServer), noDelay: true }
  const all: Server[] = [server]
  while (all.length < sockets) {
    const other = createServer(as_it, socket => server.emit('connection', socket))
    await listenOn(other, { host, port, backlog, reusePort: true })
    all.push(other)
  }
  return { address: host, family, port, close: () => close(all) }
}

async function listenOn(server: Server, on: ListenOptions): Promise<void> {
  server.listen(on)
  await once(server, 'listening')
}

/** A name in Linux's own space, where it is no file: one process at a time has it, while it begins to listen on the port. */
export const startingName = (port: number): string => `\0kith begins to listen on ${port}`

/**
 * Rejects where somebody listens on the port, or is about to: between our looking and our listening another process of ours
 * would find it free, too. So who looks has a name until it listens.
 */
async function takeAlone(place: Place): Promise<() => Promise<void>> {
  const name = createServer()
  await listenOn(name, { path: startingName(place.port) })
  const letGo = () => closeOne(name)
  const only = createServer()
  try {
    await listenOn(only, { ...place })
    await closeOne(only)
    return letGo
  } catch (error) {
    await letGo()
    throw error
  }
}

async function closeOne(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  await closed
}

async function close(servers: Server[]): Promise<void> {
  const closed = servers.map(closeOne)
  // Closing comes after draining: what is open then is idle, or out of time.
  for (const server of servers) if ('closeAllConnections' in server) (server as HttpServer).closeAllConnections()
  await Promise.all(closed)
}
