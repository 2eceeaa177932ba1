import { setTimeout } from 'node:timers/promises'

/** The time of the last output, and the maximum interval between outputs. */
export type Heartbeat = { lastAtMs: number; intervalMs: number }

/** Waits for `work` and returns its result. Meanwhile it yields `beat()` whenever the interval has passed without output. */
export async function* withHeartbeat<T>(
  work: Promise<T>,
  heartbeat: Heartbeat,
  beat: () => string,
): AsyncGenerator<string, T> {
  const stopTimer = new AbortController()
  const settled = work.then(
    () => true,
    () => true,
  )
  try {
    for (;;) {
      const leftMs = Math.max(0, heartbeat.lastAtMs + heartbeat.intervalMs - performance.now())
      const timer = setTimeout(leftMs, false, { signal: stopTimer.signal, ref: false }).catch(() => true)
      if (await Promise.race([settled, timer])) return await work
      heartbeat.lastAtMs = performance.now()
      yield beat()
    }
  } finally {
    stopTimer.abort()
  }
}
