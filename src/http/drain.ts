import { setImmediate, setTimeout } from 'node:timers/promises'

export type DrainTimes = {
  /** So long everything is served as before, because a balancer needs a moment to hear of the drain. */
  serving_ms: number
  /** The drain ends after this time in any case. */
  patience_ms: number
  /** Ends the drain at once. */
  signal?: AbortSignal
}

/** The connections of a server that drains. */
export type Drained = {
  /** How many connections are open. */
  count(): number
  /** Looks at each of them once; `may_end` allows to end those that are idle. */
  visit(may_end: boolean): void
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
  left_ms(): number
  /** Counts one in. What it returns counts that one out. */
  enter(): () => void
  /**
   * Begins draining. Resolves when no connection is open and no request is under way, and after `patience_ms` in any
   * case. The server stops listening in between, in a moment in which no request arrives.
   */
  begin(server: Drained, times: DrainTimes): Promise<void>
}

/**
 * The server stops listening after so long without a request. The kernel resets connections that are established but not
 * accepted yet, so listening must not end while clients connect.
 */
const quiet_ms = 500
/** A client that still sends requests so long after its first refusal ignores Retry-After, and is not waited for. */
const hearing_ms = 1_000
/** The last request's time ends so long before the drain does: its statement is cancelled before its 504 is sent. */
export const drain_grace_ms = 1_000

const glance_ms = 10

export function createDrain(now_ms: () => number = () => performance.now()): Drain {
  let accepting = true
  let refusing = false
  let inside = 0
  let came_at_ms = Number.NEGATIVE_INFINITY
  let until_ms = Number.POSITIVE_INFINITY

  async function begin(server: Drained, { serving_ms, patience_ms, signal }: DrainTimes) {
    const began_at_ms = now_ms()
    accepting = false
    until_ms = began_at_ms + patience_ms
    const isQuiet = (passed_ms: number) => {
      if (inside > 0 || (passed_ms < serving_ms && server.count() > 0)) return false
      return now_ms() - came_at_ms >= quiet_ms || passed_ms >= serving_ms + hearing_ms
    }
    let listening = true
    for (;;) {
      const passed_ms = now_ms() - began_at_ms
      if (signal?.aborted || passed_ms >= patience_ms) return
      refusing = passed_ms >= serving_ms
      server.visit(refusing)
      if (listening && isQuiet(passed_ms)) {
        server.stopListening()
        listening = false
      }
      if (!listening && inside === 0 && server.count() === 0) return
      await setTimeout(glance_ms)
      // By then the event loop has read what had arrived when the timer fired.
      await setImmediate()
    }
  }

  return {
    accepting: () => accepting,
    refusing: () => refusing,
    left_ms: () => Math.max(0, until_ms - drain_grace_ms - now_ms()),
    enter: () => {
      inside += 1
      came_at_ms = now_ms()
      return () => {
        inside -= 1
      }
    },
    begin,
  }
}
