import cluster from 'node:cluster'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import { type AddressInfo, createServer, type ListenOptions, Server } from 'node:net'

/** Where a server is reached. `close` stops listening at once, and resolves when the last connection has ended. */
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
export async function listen(server: HttpServer, { host, port }: Place): Promise<Listening> {
  // Workers are handed their connections by a process that does nothing else.
  const several = process.platform === 'linux' && cluster.isPrimary
  if (!several) {
    await listenOn(server, { host, port, backlog })
    return { ...(server.address() as AddressInfo), close: closer([server]) }
  }
  const { address } = await lookup(host)
  // Whoever asks for any port is given one that nobody has.
  if (port === 0) return listenOften(server, { host: address, port })
  const name = await takeName({ host: address, port })
  try {
    return await listenOften(server, { host: address, port }, name)
  } catch (error) {
    await closeOne(name)
    throw error
  }
}

async function listenOften(server: HttpServer, place: Place, taken?: Server): Promise<Listening> {
  await listenOn(server, { ...place, backlog, reusePort: true })
  const { address: host, family, port } = server.address() as AddressInfo
  const name = taken ?? (await takeName({ host, port }))
  // What Node's own servers listen with.
  const asIt = { allowHalfOpen: !(server instanceof HttpsServer), noDelay: true }
  const all: Server[] = [server]
  while (all.length < sockets) {
    const other = createServer(asIt, socket => server.emit('connection', socket))
    await listenOn(other, { host, port, backlog, reusePort: true })
    all.push(other)
  }
  return { address: host, family, port, close: closer([...all, name]) }
}

/**
 * Sockets like these share a port with those of another process of the same user, and nobody would be told: so a process of
 * ours has a name for as long as it listens, in Linux's own space, where it is no file and ends with the process. (To
 * listen alone for a moment, to see whether somebody is there, cut off whoever came in that moment.)
 */
async function takeName({ host, port }: Place): Promise<Server> {
  const name = createServer(socket => socket.destroy()).unref()
  await listenOn(name, { path: `\0kith listens on ${host} port ${port}` })
  return name
}

async function listenOn(server: Server, on: ListenOptions): Promise<void> {
  server.listen(on)
  await once(server, 'listening')
}

async function closeOne(server: Server): Promise<void> {
  const closed = once(server, 'close')
  // A server of HTTP has a `close` of its own, which cuts off idle connections.
  Server.prototype.close.call(server)
  await closed
}

function closer(servers: Server[]): () => Promise<void> {
  let closed: Promise<unknown> | undefined
  return async () => {
    closed ??= Promise.all(servers.map(closeOne))
    await closed
  }
}
