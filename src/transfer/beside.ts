import { setTimeout } from 'node:timers/promises'

/** When something was said last, and how long that may be ago. */
export type Pace = { said_at_ms: number; every_ms: number }

/** Waits for work and returns what comes of it; says something whenever nothing has been said for long enough. */
export async function* beside<T>(work: Promise<T>, pace: Pace, say: () => string): AsyncGenerator<string, T> {
  const over = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    for (;;) {
      const left_ms = Math.max(0, pace.said_at_ms + pace.every_ms - performance.now())
      const tick = setTimeout(left_ms, false, { signal: over.signal, ref: false }).catch(() => true)
      if (await Promise.race([ended, tick])) return await work
      pace.said_at_ms = performance.now()
      yield say()
    }
  } finally {
    over.abort()
  }
}
