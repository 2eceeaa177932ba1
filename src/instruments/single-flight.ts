import { setTimeout } from 'node:timers/promises'

/**
 * Shares one run of `work` between concurrent calls. A call joins the run that is in progress or waits to start. A run
 * starts in a later event-loop turn than the call, so that all calls of a turn share it. It starts at least `minMs`
 * after the previous start, and `runs` times as long after it as the previous run took.
 */
export function singleFlight<T>(
  work: () => Promise<T>,
  { minMs, runs } = { minMs: 0, runs: 0 },
  wait: (ms: number) => Promise<unknown> = setTimeout,
): () => Promise<T> {
  let running: Promise<T> | undefined
  let nextAtMs = Number.NEGATIVE_INFINITY
  const run = async () => {
    await wait(Math.max(0, nextAtMs - performance.now()))
    const startedAtMs = performance.now()
    try {
      return await work()
    } finally {
      nextAtMs = startedAtMs + Math.max(minMs, runs * (performance.now() - startedAtMs))
    }
  }
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}

/**
 * Shares the result of `work` between all calls while it runs and for a time after its end. A failure is shared only
 * during the run.
 */
export function shareFor<T>(ms: number, work: () => Promise<T>): () => Promise<T> {
  let shared: Promise<T> | undefined
  let untilMs = 0
  const keepFor = (ms: number) => () => {
    untilMs = performance.now() + ms
  }
  return () => {
    if (shared && performance.now() < untilMs) return shared
    untilMs = Number.POSITIVE_INFINITY
    shared = work()
    shared.then(keepFor(ms), keepFor(0))
    return shared
  }
}
