import { setTimeout } from 'node:timers/promises'

/** Waits for work and returns what comes of it; says something each time that `every_ms` have passed meanwhile. */
export async function* beside<T>(work: Promise<T>, every_ms: number, say: () => string): AsyncGenerator<string, T> {
  const over = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    for (;;) {
      const tick = setTimeout(every_ms, false, { signal: over.signal, ref: false }).catch(() => true)
      if (await Promise.race([ended, tick])) return await work
      yield say()
    }
  } finally {
    over.abort()
  }
}
