import { setTimeout } from 'node:timers/promises'
import { firstWithin, type SetSize } from '../entities/write/set-size.ts'

/** An item with its size, which counts towards the size of a batch. */
type Weighed = { bytes: number }

/**
 * Groups the items of a source into batches. Each batch contains the items that arrived since the previous one, and the
 * source is read meanwhile. So a consumer that is slower than the source gets larger batches, and no batch waits to
 * fill up. A batch has at most `maxSize` items and bytes. One larger item is a separate batch. The read-ahead has the
 * same limits. An error of the source is thrown instead of the remaining items.
 */
export async function* batchStream<T extends Weighed>(
  source: AsyncIterable<T[]>,
  maxSize: SetSize,
): AsyncGenerator<T[]> {
  const iterator = source[Symbol.asyncIterator]()
  const buffered: T[] = []
  let bytes = 0
  let isEnded = false
  let failure: { error: unknown } | undefined
  let reading: Promise<void> | undefined
  const readOne = async () => {
    const { value, done } = await iterator.next()
    isEnded = done === true
    for (const item of (value as T[] | undefined) ?? []) {
      buffered.push(item)
      bytes += item.bytes
    }
  }
  const readOn = () => {
    if (reading || isEnded || failure || buffered.length >= maxSize.items || bytes >= maxSize.bytes) return
    reading = readOne()
      .catch(error => {
        failure = { error }
      })
      .then(() => {
        reading = undefined
        readOn()
      })
  }
  try {
    for (;;) {
      readOn()
      while (buffered.length === 0 && reading) await reading
      if (failure) throw failure.error
      if (buffered.length === 0) return
      const batch = firstWithin(buffered, item => item.bytes, maxSize)
      buffered.splice(0, batch.length)
      for (const item of batch) bytes -= item.bytes
      readOn()
      yield batch
    }
  } finally {
    // This is not awaited, because it would settle only after the pending read, which may never end.
    iterator.return?.().catch(() => {})
  }
}

/** The time of the last output, and the maximum interval between outputs. */
type Heartbeat = { lastAtMs: number; intervalMs: number }

/**
 * Waits for `work` and returns its result. Meanwhile, yields `beat()` whenever the interval has passed without output.
 */
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
