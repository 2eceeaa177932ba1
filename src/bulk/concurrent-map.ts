/**
 * Maps the items of a source, up to `maxConcurrent` at a time, and yields each result in order as soon as it is available. After a
 * failure no further item starts. The results of the items in progress are yielded, and then the failure is thrown.
 */
export async function* mapConcurrently<T, R>(
  source: AsyncIterator<T, unknown>,
  maxConcurrent: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  /** The results in order. A failed item has an empty list. */
  const pending: Promise<R[]>[] = []
  let reading: Promise<void> | undefined
  let isEnded = false
  let failure: { error: unknown } | undefined
  const fail = (error: unknown) => {
    failure ??= { error }
    isEnded = true
    return []
  }
  const readNext = async () => {
    const next = await source.next()
    if (next.done) isEnded = true
    else if (!isEnded) pending.push(work(next.value).then(result => [result], fail))
  }
  for (;;) {
    if (!isEnded && pending.length < maxConcurrent)
      reading ??= readNext()
        .catch(error => void fail(error))
        // Always reset: racing a promise that is already settled would loop without end and block the event loop.
        .finally(() => {
          reading = undefined
        })
    const first = pending[0]
    if (!first && isEnded) break
    const settled = await Promise.race([first, reading].filter(awaited => awaited !== undefined))
    if (!settled) continue
    pending.shift()
    yield* settled
  }
  if (failure) throw failure.error
}
