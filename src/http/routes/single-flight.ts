import { setTimeout } from 'node:timers/promises'

/**
 * Shares one run of `work` between concurrent calls: a call joins the run that is under way or waits to start. A run
 * starts in a later event-loop turn than the call, so that all calls of a turn share it, and at least `pauseMs` after
 * the previous start.
 */
export function singleFlight<T>(work: () => Promise<T>, pauseMs = 0): () => Promise<T> {
  let running: Promise<T> | undefined
  let startedAtMs = Number.NEGATIVE_INFINITY
  const run = async () => {
    await setTimeout(Math.max(0, startedAtMs + pauseMs - performance.now()))
    startedAtMs = performance.now()
    return work()
  }
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}
