import { firstWithin, type SetSize } from '../entities/write/set-size.ts'

/** An item with its size, which counts towards the size of a batch. */
export type Weighed = { bytes: number }

/**
 * Groups the items of a source into batches. Each batch contains the items that arrived since the previous one, and the source is
 * read meanwhile. A consumer slower than the source therefore gets larger batches, and no batch waits to fill up. A batch has at
 * most `maxSize` items and bytes; one larger item is a batch of its own. The read-ahead stops at the same limits. An error of the
 * source is thrown instead of the items that were not passed on yet.
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
    // Not awaited: it would settle only after the pending read, which may never end.
    iterator.return?.().catch(() => {})
  }
}
