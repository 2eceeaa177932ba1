import { performance } from 'node:perf_hooks'

/**
 * Returns a function that measures the share of the time since its last call, from 0 to 1, in which the event loop was
 * busy.
 */
export function utilizationSinceLastCall(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
}

/**
 * The time that the work of long requests may take in one turn of the event loop, so that other requests are answered
 * soon.
 */
const turnMs = 4

/** The start of the long work of the current turn. Undefined before the first long work. */
let beganMs: number | undefined
/** Long work that waits for a later turn, first come first served. */
const waiting: (() => void)[] = []

/**
 * Long work calls this before each of its pieces. Returns undefined if the current turn of the event loop has time
 * left, else a promise that resolves in a later turn. Each turn resumes one waiting piece of work, and other events are
 * served before the next one.
 */
export function yieldIfDue(): Promise<void> | undefined {
  const nowMs = performance.now()
  if (beganMs === undefined) {
    beganMs = nowMs
    setImmediate(beginTurn)
  }
  if (nowMs - beganMs < turnMs) return undefined
  return new Promise(resolve => waiting.push(resolve))
}

/** Starts the next turn, which resumes the longest waiting piece of work. */
function beginTurn() {
  beganMs = undefined
  const resume = waiting.shift()
  if (!resume) return
  beganMs = performance.now()
  setImmediate(beginTurn)
  resume()
}
