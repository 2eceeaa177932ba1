import { connect, type Socket } from 'node:net'

const beatMs = 250
/** Work in flight is nothing to worry about before this. */
const worryAfterMs = 250
/** A server that does not answer a knock within this is taken for silent. With the rest it is noticed within 2.5 s. */
const patienceMs = 2_000

/** The server has stopped answering: frozen, or cut off without anybody being told. */
export class ServerSilent extends Error {}

/** Where the server listens: `host` is a name, an address, or a socket's folder. */
export type ServerAddress = { host: string; port: number }

/** Work that is in flight. `giveUp` is called when the server has fallen silent under it. */
export type InFlight = { giveUp(): void }

export type Liveness = {
  /** Rejects while the server is silent: whoever came in would wait for nothing. */
  throwIfSilent(): void
  /** Counts work in; the answer counts it out. */
  enter(work: InFlight): () => void
  stop(): void
}

/**
 * Watches whether the server answers while work waits for it. A lock that is waited for is no silence: so a knock at the
 * server's door tells, beside the connections that are in use.
 */
export function watchLiveness(door: ServerAddress): Liveness {
  // In order of arrival, and no Map: one that is written to all the time leaves its old tables behind, each of which knows the
  // next. Once one has grown old, all that was ever in flight grows old with it: a sixth more CPU for a GET, in one process of four.
  const inFlight: { work: InFlight; sinceMs: number }[] = []
  let silent = false
  let knocking = false
  const timer = setInterval(beat, beatMs).unref()

  async function beat() {
    const [oldest] = inFlight
    const worried = oldest !== undefined && performance.now() - oldest.sinceMs > worryAfterMs
    if (knocking || !(silent || worried)) return
    knocking = true
    silent = !(await knock(door))
    knocking = false
    if (silent) for (const { work } of [...inFlight]) work.giveUp()
  }
  return {
    throwIfSilent: () => {
      if (silent) throw new ServerSilent('the server does not answer')
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

/** https://www.postgresql.org/docs/current/protocol-message-formats.html: SSLRequest, which any server answers before a login. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** False where nothing comes back in time. A refusal is an answer. */
function knock({ host, port }: ServerAddress): Promise<boolean> {
  return new Promise(resolve => {
    const socket: Socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    const settle = (answered: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answered)
    }
    // An answer that is there already, but that this process was too busy to read, is read first.
    const timer = setTimeout(() => setImmediate(settle, false), patienceMs)
    socket.once('data', () => settle(true))
    socket.once('error', () => settle(true))
    socket.once('close', () => settle(true))
    socket.write(sslRequest)
  })
}
