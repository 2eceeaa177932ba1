/** Who is inside: requests below `/v1` enter and leave, and a service that drains waits for the last of them. */
export type Drain = {
  /** False from the moment that draining began: /readyz says so, and answers close their connections. */
  accepting(): boolean
  /** Whether who comes now is turned away. */
  refusing(): boolean
  /** Counts one in. What it returns counts that one out. */
  enter(): () => void
  /**
   * Begins draining. For `serving_ms` whoever still comes is served, for balancers need a moment to hear of it. Settles
   * when nobody is inside and nobody came lately, and after `patience_ms` in any case.
   */
  begin(times: { serving_ms: number; patience_ms: number }): Promise<void>
}

/**
 * After so long without a request none is on its way: those who keep a connection busy have heard by then that it ends. The
 * connections are closed next, and a request that arrived in that moment would be cut off without an answer.
 */
const quiet_ms = 500
/** Whoever still comes so long after they were first turned away does not listen, and is not waited for. */
const hearing_ms = 1_000

const glance_ms = 10

export function createDrain(now_ms: () => number = () => performance.now()): Drain {
  let accepting = true
  let refusing = false
  let inside = 0
  let came_at_ms = Number.NEGATIVE_INFINITY
  return {
    accepting: () => accepting,
    refusing: () => refusing,
    enter: () => {
      inside += 1
      came_at_ms = now_ms()
      return () => {
        inside -= 1
      }
    },
    begin: ({ serving_ms, patience_ms }) => {
      accepting = false
      const began_at_ms = now_ms()
      const isOver = (now: number) => {
        if (now - began_at_ms >= patience_ms) return true
        return inside === 0 && (now - came_at_ms >= quiet_ms || now - began_at_ms >= serving_ms + hearing_ms)
      }
      return new Promise<void>(resolve => {
        const look = () => {
          const now = now_ms()
          refusing = isOver(now) || now - began_at_ms >= serving_ms
          if (!isOver(now)) return setTimeout(look, glance_ms)
          return resolve()
        }
        look()
      })
    },
  }
}
