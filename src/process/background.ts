import { setTimeout } from 'node:timers/promises'

/** A background task that repeats until it is stopped. */
export type Background = { stop(): Promise<void> }

/**
 * Runs `work` repeatedly, with a pause of `intervalMs` and never concurrently. An error goes to `report`, and the next
 * run follows as usual. `stop` aborts the signal of `work` and waits for the current run.
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<unknown>,
  intervalMs: number,
  report: (error: unknown) => void,
): Background {
  const stopping = new AbortController()
  const { signal } = stopping
  const running = (async () => {
    while (!signal.aborted) {
      await setTimeout(intervalMs, undefined, { signal, ref: false }).catch(() => {})
      if (!signal.aborted) await work(signal).catch(report)
    }
  })()
  return {
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
