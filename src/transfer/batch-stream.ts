/** What is gathered is counted and weighed. */
export type Weighed = { bytes: number }

/**
 * Hands on, each time it is asked, what has arrived since, and reads on meanwhile: so whoever works slower than the source
 * gets larger parts, and nobody waits for a part to fill up. A part, and what is read ahead of it, has at most so many
 * items, and bytes but for one item. An error of the source is thrown in place of what has not been handed on.
 */
export async function* batchStream<T extends Weighed>(
  source: AsyncIterable<T[]>,
  size: { items: number; bytes: number },
): AsyncGenerator<T[]> {
  const iterator = source[Symbol.asyncIterator]()
  const gathered: T[] = []
  let bytes = 0
  let ended = false
  let failure: { error: unknown } | undefined
  let reading: Promise<void> | undefined
  const readOne = async () => {
    const { value, done } = await iterator.next()
    ended = done === true
    for (const item of (value as T[] | undefined) ?? []) {
      gathered.push(item)
      bytes += item.bytes
    }
  }
  const readOn = () => {
    if (reading || ended || failure || gathered.length >= size.items || bytes >= size.bytes) return
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
      while (gathered.length === 0 && reading) await reading
      if (failure) throw failure.error
      if (gathered.length === 0) return
      const part = gathered.splice(0, countWithin(gathered, size))
      for (const item of part) bytes -= item.bytes
      readOn()
      yield part
    }
  } finally {
    // Not waited for: it comes after the item that does not come.
    iterator.return?.().catch(() => {})
  }
}

/** How many of the first items make a part. */
function countWithin(items: readonly Weighed[], size: { items: number; bytes: number }): number {
  let bytes = 0
  const most = Math.min(items.length, size.items)
  for (let count = 0; count < most; count += 1) {
    bytes += items[count]!.bytes
    if (count > 0 && bytes > size.bytes) return count
  }
  return most
}
