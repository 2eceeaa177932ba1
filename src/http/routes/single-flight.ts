import { setTimeout } from 'node:timers/promises'

/**
 * Shares work among those who ask for it: a call joins the run that is under way, or that waits to begin. A run begins in a later
 * turn of the event loop than the call, so that all calls of a turn share it, and at least `pauseMs` after the run before.
 */
export function singleFlight<T>(work: () => Promise<T>, pauseMs = 0): () => Promise<T> {
  let running: Promise<T> | undefined
  let begunAtMs = Number.NEGATIVE_INFINITY
  const run = async () => {
    await setTimeout(Math.max(0, begunAtMs + pauseMs - performance.now()))
    begunAtMs = performance.now()
    return work()
  }
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}
