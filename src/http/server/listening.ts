import cluster from 'node:cluster'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { type AddressInfo, createServer, type ListenOptions, Server } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'

export type Listening = AddressInfo & {
  /**
   * Stops listening in a moment in which no connection waits to be accepted, because the kernel resets those. Resolves when it
   * has stopped.
   */
  stop(): Promise<void>
  /** Stops listening at once. Resolves when the last connection has closed. */
  close(): Promise<void>
}

type Address = { host: string; port: number }

/**
 * Connections that may wait to be accepted. In a rush past Node's default of 511, clients retry a connection after a
 * second.
 */
const backlog = 4_096

/**
 * libuv accepts one connection per listening socket and event-loop turn, and a turn also serves every open connection.
 * With one socket, a busy server served the last of a thousand concurrent connections after three seconds. With 16
 * sockets it took one second.
 */
const socketCount = 16

/**
 * {@link Listening.stop} waits until no connection has arrived for this time: every client that waits for a response before it
 * connects again has then done so.
 */
const quietMs = 300
/** The longest wait for that. Other clients connect however many responses they wait for. */
const maxStopMs = 1_500
const checkIntervalMs = 5
/** Then kith accepts what still waits, in at most so many turns of the event loop. */
const maxLastTurns = 1_000
/**
 * The time in which the other workers stop listening too. The primary process listens until the last one has, and clients that
 * were answered before would connect to it again.
 */
const otherWorkersMs = quietMs

/**
 * Makes a server listen, on Linux on several sockets of one port. Rejects with the system's error, such as EADDRINUSE.
 */
export async function listen(server: HttpServer, { host, port }: Address): Promise<Listening> {
  // Workers get their connections from a primary process that does nothing else.
  const canShare = process.platform === 'linux' && cluster.isPrimary
  if (!canShare) {
    await listenOn(server, { host, port, backlog })
    return { ...(server.address() as AddressInfo), ...closer(server, [server]) }
  }
  const { address } = await lookup(host)
  // Port 0 means any free port, so no other process has it.
  if (port === 0) return listenOnAll(server, { host: address, port })
  const lock = await lockPort({ host: address, port })
  try {
    return await listenOnAll(server, { host: address, port }, lock)
  } catch (error) {
    await closeOne(lock)
    throw error
  }
}

async function listenOnAll(server: HttpServer, requested: Address, heldLock?: Server): Promise<Listening> {
  await listenOn(server, { ...requested, backlog, reusePort: true })
  const { address: host, family, port } = server.address() as AddressInfo
  const lock = heldLock ?? (await lockPort({ host, port }))
  // The options with which Node's own servers listen.
  const options = { allowHalfOpen: true, noDelay: true }
  const all: Server[] = [server]
  while (all.length < socketCount) {
    const other = createServer(options, socket => server.emit('connection', socket))
    await listenOn(other, { host, port, backlog, reusePort: true })
    all.push(other)
  }
  return { address: host, family, port, ...closer(server, [...all, lock]) }
}

/**
 * Locks a port for this process. With `reusePort`, two processes of one user share a port without an error. So a
 * process holds a socket in Linux's abstract namespace while it listens. Such a name is not a file and disappears with
 * the process. Listening without `reusePort` for a moment, as a test, would reset connections that arrive in that
 * moment.
 */
async function lockPort({ host, port }: Address): Promise<Server> {
  const lock = createServer(socket => socket.destroy()).unref()
  await listenOn(lock, { path: `\0kith listens on ${host} port ${port}` })
  return lock
}

async function listenOn(server: Server, options: ListenOptions): Promise<void> {
  server.listen(options)
  await once(server, 'listening')
}

async function closeOne(server: Server): Promise<void> {
  const closed = once(server, 'close')
  // The `close` of an HTTP server also closes idle connections, which must stay open here.
  Server.prototype.close.call(server)
  await closed
}

/** Returns the functions that close the listening sockets of a server. */
function closer(server: HttpServer, servers: Server[]): Pick<Listening, 'stop' | 'close'> {
  let closed: Promise<unknown> | undefined
  const close = async () => {
    closed ??= Promise.all(servers.map(closeOne))
    await closed
  }
  const stop = async () => {
    const untilMs = performance.now() + maxStopMs
    let arrivedAtMs = performance.now()
    const note = () => {
      arrivedAtMs = performance.now()
    }
    server.on('connection', note)
    while (performance.now() < Math.min(untilMs, arrivedAtMs + quietMs)) await setTimeout(checkIntervalMs)
    // A turn accepts one connection of each socket. After a turn without any, no connection waits. Turns are counted instead of timed: on
    // a machine under load, each may take 100 ms.
    for (let turns = 0; turns < maxLastTurns; turns += 1) {
      const turnAtMs = performance.now()
      await setImmediate()
      if (arrivedAtMs < turnAtMs) break
    }
    server.off('connection', note)
    void close()
    if (cluster.isWorker) await setTimeout(otherWorkersMs)
  }
  return { stop, close }
}
