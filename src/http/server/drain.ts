import { setImmediate, setTimeout } from 'node:timers/promises'

export type DrainTimes = {
  /** So long everything is served as before, because a balancer needs a moment to hear of the drain. */
  servingMs: number
  /** The drain ends after this time in any case. */
  patienceMs: number
  /** Ends the drain at once. */
  signal?: AbortSignal
}

/** The connections of a server that drains. */
export type Drained = {
  /** How many connections are open. */
  count(): number
  /** Looks at each of them once; `mayEnd` allows to end those that are idle. */
  visit(mayEnd: boolean): void
  /** New connections are refused from now on; open ones stay. */
  stopListening(): void
}

/** Counts the requests below `/v1` in and out, and ends the service without cutting one off. */
export type Drain = {
  /** False from the moment that draining began: /readyz says so, and answers close their connections. */
  accepting(): boolean
  /** Whether requests of connections that are made from now on are refused. */
  refusing(): boolean
  /** How long a request that begins now may take so that it is answered before the drain ends. */
  leftMs(): number
  /** Counts one in. What it returns counts that one out. */
  enter(): () => void
  /**
   * Begins draining. Resolves when no connection is open and no request is under way, and after `patienceMs` in any
   * case. The server stops listening in between, in a moment in which no request arrives.
   */
  begin(server: Drained, times: DrainTimes): Promise<void>
}

/**
 * The server stops listening after so long without a request. The kernel resets connections that are established but not
 * accepted yet, so listening must not end while clients connect.
 */
const quietMs = 500
/** A client that still sends requests so long after its first refusal ignores Retry-After, and is not waited for. */
const hearingMs = 1_000
/** The last request's time ends so long before the drain does: its statement is cancelled before its 504 is sent. */
export const drainGraceMs = 1_000

const glanceMs = 10

export function createDrain(nowMs: () => number = () => performance.now()): Drain {
  let accepting = true
  let refusing = false
  let inside = 0
  let cameAtMs = Number.NEGATIVE_INFINITY
  let untilMs = Number.POSITIVE_INFINITY

  async function begin(server: Drained, { servingMs, patienceMs, signal }: DrainTimes) {
    const beganAtMs = nowMs()
    accepting = false
    untilMs = beganAtMs + patienceMs
    const isQuiet = (passedMs: number) => {
      if (inside > 0 || (passedMs < servingMs && server.count() > 0)) return false
      return nowMs() - cameAtMs >= quietMs || passedMs >= servingMs + hearingMs
    }
    let listening = true
    for (;;) {
      const passedMs = nowMs() - beganAtMs
      if (signal?.aborted || passedMs >= patienceMs) return
      refusing = passedMs >= servingMs
      server.visit(refusing)
      if (listening && isQuiet(passedMs)) {
        server.stopListening()
        listening = false
      }
      if (!listening && inside === 0 && server.count() === 0) return
      await setTimeout(glanceMs)
      // By then the event loop has read what had arrived when the timer fired.
      await setImmediate()
    }
  }

  return {
    accepting: () => accepting,
    refusing: () => refusing,
    leftMs: () => Math.max(0, untilMs - drainGraceMs - nowMs()),
    enter: () => {
      inside += 1
      cameAtMs = nowMs()
      return () => {
        inside -= 1
      }
    },
    begin,
  }
}
