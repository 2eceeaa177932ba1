import { connect, type Socket } from 'node:net'
import type { ServerAddress } from '../../process/database-url.ts'

const checkIntervalMs = 250
/** The server is probed once a statement has been in flight for longer than this. */
const probeAfterMs = 250
/**
 * A server that does not answer a probe within this time counts as silent. With the two delays above, silence is
 * detected within 2.5 s.
 */
const patienceMs = 2_000

/** The server has stopped answering: it is frozen, or the network was cut without notice. */
export class ServerSilent extends Error {}

/**
 * Work in flight. `giveUp` is called when the server falls silent, or after 2 s if the work `isOutdated`, because other
 * connections have moved to another server.
 */
type InFlight = { giveUp(): void; isOutdated?(): boolean }

export type Liveness = {
  /** Throws {@link ServerSilent} while the server is silent, because new work would wait in vain. */
  throwIfSilent(): void
  /** Registers work in flight. The function that it returns removes it. */
  enter(work: InFlight): () => void
  stop(): void
}

/**
 * Watches whether the server answers while work waits for it. A statement that waits for a lock gets no answer either,
 * so kith probes the server on a separate connection. `findAddress` returns the server that connections go to, or
 * undefined while none is chosen. `onSilent` is called when it falls silent.
 */
export function watchLiveness(
  findAddress: () => ServerAddress | undefined,
  onSilent: (address: ServerAddress) => void,
): Liveness {
  // This is an array in order of arrival, not a Map. A Map with constant writes leaves its old hash tables behind, each
  // of which refers to the next. Once one of them reaches V8's old generation, all later entries are promoted with it:
  // a sixth more CPU per GET, in one process of four.
  const inFlight: { work: InFlight; sinceMs: number }[] = []
  let isSilent = false
  let isProbing = false
  const timer = setInterval(check, checkIntervalMs).unref()

  async function check() {
    const outdatedSinceMs = performance.now() - patienceMs
    for (const { work, sinceMs } of [...inFlight]) if (sinceMs < outdatedSinceMs && work.isOutdated?.()) work.giveUp()
    const [oldest] = inFlight
    const isOverdue = oldest !== undefined && performance.now() - oldest.sinceMs > probeAfterMs
    if (isProbing || !(isSilent || isOverdue)) return
    const address = findAddress()
    isProbing = true
    isSilent = address !== undefined && !(await probe(address))
    isProbing = false
    if (!isSilent) return
    onSilent(address!)
    for (const { work } of [...inFlight]) work.giveUp()
  }
  return {
    throwIfSilent: () => {
      if (isSilent) throw new ServerSilent('the server does not respond')
    },
    enter: work => {
      const entry = { work, sinceMs: performance.now() }
      inFlight.push(entry)
      return () => {
        const index = inFlight.indexOf(entry)
        if (index !== -1) inFlight.splice(index, 1)
      }
    },
    stop: () => clearInterval(timer),
  }
}

/**
 * SSLRequest, which any server answers before a login:
 * https://www.postgresql.org/docs/current/protocol-message-formats.html.
 */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Resolves with false if the server sends nothing in time. A refused connection counts as an answer. */
function probe({ host, port }: ServerAddress): Promise<boolean> {
  return new Promise(resolve => {
    const socket: Socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    const settle = (answered: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answered)
    }
    // If this process was busy, an unread answer may have arrived. The event loop reads it before the timer's
    // setImmediate runs.
    const timer = setTimeout(() => setImmediate(settle, false), patienceMs)
    socket.once('data', () => settle(true))
    socket.once('error', () => settle(true))
    socket.once('close', () => settle(true))
    socket.write(sslRequest)
  })
}
