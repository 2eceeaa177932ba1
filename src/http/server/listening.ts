import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { type AddressInfo, Server } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'

export type Listening = Awaited<ReturnType<typeof listen>>

/**
 * The maximum number of connections that wait to be accepted. In a burst beyond Node's default of 511, clients retry a
 * connection after a second.
 */
const backlog = 4_096

/**
 * {@link stopListening} waits until no connection has arrived for this time. By then, every client that waits for a
 * response before it reconnects has reconnected.
 */
const quietMs = 300
/** The maximum duration of that wait. Some clients open connections without waiting for responses. */
const maxStopMs = 1_500
const checkIntervalMs = 5
/** After that, kith accepts the remaining connections, within at most this many event-loop turns. */
const maxLastTurns = 1_000
/**
 * The time in which the other workers stop listening too. The primary process listens until the last worker has
 * stopped, and answered clients would reconnect to it.
 */
const otherWorkersMs = quietMs

/** Starts to listen. Rejects with the system's error, such as EADDRINUSE. */
export async function listen(server: HttpServer, { host, port }: { host: string; port: number }) {
  server.listen({ host, port, backlog })
  await once(server, 'listening')
  let closed: Promise<unknown> | undefined
  /** Stops listening at once. Resolves when it has stopped. */
  const close = async (): Promise<void> => {
    closed ??= closeOne(server)
    await closed
  }
  return { ...(server.address() as AddressInfo), stop: () => stopListening(server, close), close }
}

async function closeOne(server: Server): Promise<void> {
  const closed = once(server, 'close')
  // The `close` of an HTTP server also closes idle connections, which must stay open here.
  Server.prototype.close.call(server)
  await closed
}

/**
 * Stops listening at a moment without connections waiting to be accepted, because the kernel resets those. Resolves
 * when it has stopped.
 */
async function stopListening(server: HttpServer, close: () => Promise<void>): Promise<void> {
  const untilMs = performance.now() + maxStopMs
  let arrivedAtMs = performance.now()
  const note = () => {
    arrivedAtMs = performance.now()
  }
  server.on('connection', note)
  while (performance.now() < Math.min(untilMs, arrivedAtMs + quietMs)) await setTimeout(checkIntervalMs)
  // A turn accepts one connection. After a turn without any, no connection waits. This counts turns instead of time,
  // because each may take 100 ms on a machine under load.
  for (let turns = 0; turns < maxLastTurns; turns += 1) {
    const turnAtMs = performance.now()
    await setImmediate()
    if (arrivedAtMs < turnAtMs) break
  }
  server.off('connection', note)
  void close()
  if (cluster.isWorker) await setTimeout(otherWorkersMs)
}
