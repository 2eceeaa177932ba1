import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'

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
  // These sockets would share a port with those of another process of ours, too, and nobody would be told.
  if (several && place.port !== 0) await refuseTaken(place)
  await listenOn(server, place, several)
  const address = server.address() as AddressInfo
  // What Node's own servers listen with.
  const as_it = { allowHalfOpen: !(server instanceof HttpsServer), noDelay: true }
  const others: Server[] = []
  while (several && others.length + 1 < sockets) {
    const other = createServer(as_it, socket => server.emit('connection', socket))
    await listenOn(other, { host: address.address, port: address.port }, true)
    others.push(other)
  }
  return { ...address, close: () => close(server, others) }
}

async function listenOn(server: Server, place: Place, reusePort: boolean): Promise<void> {
  server.listen({ ...place, backlog, reusePort })
  await once(server, 'listening')
}

async function refuseTaken(place: Place): Promise<void> {
  const only = createServer()
  await listenOn(only, place, false)
  only.close()
  await once(only, 'close')
}

async function close(server: HttpServer, others: Server[]): Promise<void> {
  const closed = [server, ...others].map(each => once(each, 'close'))
  for (const each of [server, ...others]) each.close()
  // Closing comes after draining: what is open then is idle, or out of time.
  server.closeAllConnections()
  await Promise.all(closed)
}
