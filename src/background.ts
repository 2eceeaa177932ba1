import { setTimeout } from 'node:timers/promises'

/** Work that a process does beside its requests, again and again until it is stopped. */
export type Background = { stop(): Promise<void> }

/**
 * Runs `work` every `intervalMs`, never twice at once. What it throws goes to `report`, and it is tried again at the
 * next turn. `stop` aborts its signal and waits for the turn that is under way.
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<unknown>,
  intervalMs: number,
  report: (error: unknown) => void,
): Background {
  const ending = new AbortController()
  const { signal } = ending
  const running = (async () => {
    while (!signal.aborted) {
      await setTimeout(intervalMs, undefined, { signal, ref: false }).catch(() => {})
      if (!signal.aborted) await work(signal).catch(report)
    }
  })()
  return {
    stop: async () => {
      ending.abort()
      await running
    },
  }
}
