import { setTimeout } from 'node:timers/promises'

/** When something was said last, and how long that may be ago. */
export type Pace = { saidAtMs: number; everyMs: number }

/** Waits for work and returns what comes of it; says something whenever nothing has been said for long enough. */
export async function* withHeartbeat<T>(work: Promise<T>, pace: Pace, say: () => string): AsyncGenerator<string, T> {
  const over = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    for (;;) {
      const leftMs = Math.max(0, pace.saidAtMs + pace.everyMs - performance.now())
      const tick = setTimeout(leftMs, false, { signal: over.signal, ref: false }).catch(() => true)
      if (await Promise.race([ended, tick])) return await work
      pace.saidAtMs = performance.now()
      yield say()
    }
  } finally {
    over.abort()
  }
}
