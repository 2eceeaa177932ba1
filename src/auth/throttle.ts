import { setTimeout } from 'node:timers/promises'
import { ageOf } from './age-of.ts'

/** Runs the same work at a limited rate, however many callers request it. Callers share a run. */
export type Throttle = {
  /** Waits for the pending run, or starts the next one. Rejects if the work does. */
  run(): Promise<void>
  /**
   * Waits until `isDone` holds, at most until a run that began after this call has ended. A run that began earlier may
   * have read older data. Rejects if the work does.
   */
  runUntil(isDone: () => boolean): Promise<void>
}

/** Creates a throttle for `work`. Its runs start at least `pauseMs` milliseconds apart. */
export function createThrottle(work: () => Promise<void>, pauseMs: number, nowMs: () => number): Throttle {
  let startedAtMs = Number.NEGATIVE_INFINITY
  let startedRuns = 0
  let lastCompletedRun = 0
  let running: Promise<void> | undefined

  async function startRun() {
    // Even a pause of 0 ms waits for a timer, so all callers of one event-loop turn share the run.
    await setTimeout(Math.max(0, pauseMs - ageOf(startedAtMs, nowMs())))
    startedAtMs = nowMs()
    const runNumber = ++startedRuns
    await work()
    lastCompletedRun = runNumber
  }

  function run(): Promise<void> {
    running ??= startRun().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    run,
    runUntil: async isDone => {
      const startedBefore = startedRuns
      do await run()
      while (!isDone() && lastCompletedRun <= startedBefore)
    },
  }
}
