import { setImmediate, setTimeout } from 'node:timers/promises'

export type DrainTimes = {
  /** The time in which the service continues as before, because a load balancer needs a moment to notice the drain. */
  servingMs: number
  /** The maximum duration of the drain. */
  patienceMs: number
  /** Ends the drain at once. */
  signal?: AbortSignal
}

/** The requests and connections of a server. */
export type DrainableServer = {
  /** Returns the number of requests in flight below `/v1`. */
  inFlight(): number
  /** Returns the number of open connections. */
  openConnections(): number
  /** Checks each connection once. `mayEnd` allows it to end idle ones. */
  visit(mayEnd: boolean): void
  /**
   * Accepts the connections that have arrived, then stops listening. Resolves when it has stopped. Open connections
   * stay. Requests on connections that it accepts meanwhile are answered after that.
   */
  stopListening(): Promise<void>
}

/** Ends the service without aborting a request below `/v1`. */
export type Drain = ReturnType<typeof createDrain>

/**
 * A server without connections stops listening after this time without a request, because no load balancer has to
 * notice the drain.
 */
const quietMs = 500
/**
 * The deadline of the last request is this long before the end of the drain, so that its statement is cancelled and its
 * 504 is sent.
 */
export const drainGraceMs = 1_000

const checkIntervalMs = 10

export function createDrain(nowMs: () => number = () => performance.now()) {
  let isAccepting = true
  let isRefusing = false
  let lastRequestAtMs = Number.NEGATIVE_INFINITY
  let untilMs = Number.POSITIVE_INFINITY
  let stopping: Promise<void> | undefined

  /**
   * Begins the drain. Resolves when no connection is open and no request is in flight, or after `patienceMs` at the
   * latest. The server stops listening meanwhile.
   */
  async function begin(server: DrainableServer, { servingMs, patienceMs, signal }: DrainTimes): Promise<void> {
    const startedAtMs = nowMs()
    isAccepting = false
    untilMs = startedAtMs + patienceMs
    const isQuiet = (passedMs: number) => {
      if (server.inFlight() > 0) return false
      return passedMs >= servingMs || (server.openConnections() === 0 && nowMs() - lastRequestAtMs >= quietMs)
    }
    let isListening = true
    for (;;) {
      const passedMs = nowMs() - startedAtMs
      if (signal?.aborted || passedMs >= patienceMs) return
      isRefusing = passedMs >= servingMs || !isListening
      server.visit(isRefusing)
      if (isListening && isQuiet(passedMs)) {
        isListening = false
        isRefusing = true
        stopping = server.stopListening()
        await stopping
        stopping = undefined
      }
      if (!isListening && server.inFlight() + server.openConnections() === 0) return
      await setTimeout(checkIntervalMs)
      // After this, the event loop has read all input that had arrived when the timer fired.
      await setImmediate()
    }
  }

  return {
    /** False from the start of the drain on: /readyz returns 503 then, and responses close their connections. */
    isAccepting: () => isAccepting,
    /** Whether requests on new connections are refused. */
    isRefusing: () => isRefusing,
    /**
     * While the server stops listening, a promise that resolves when it has stopped; otherwise undefined. Requests on
     * new connections wait for it, because their clients would reconnect after the response.
     */
    stopping: () => stopping,
    /** The time limit of a request that starts now, so that it is answered before the drain ends. */
    leftMs: () => (isAccepting ? Number.POSITIVE_INFINITY : Math.max(0, untilMs - drainGraceMs - nowMs())),
    /** Records that a request below `/v1` has arrived. */
    noteRequest: () => {
      lastRequestAtMs = nowMs()
    },
    begin,
  }
}
