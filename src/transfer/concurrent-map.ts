/**
 * Works on what a source yields, up to `atOnce` at a time, and hands on what comes of each, in their order, as soon as it is
 * there. Once something has failed nothing more is begun, and what is under way is handed on before the failure is thrown.
 */
export async function* mapConcurrently<T, R>(
  source: AsyncIterator<T, unknown>,
  atOnce: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  /** What comes of each: nothing where it fails. */
  const working: Promise<R[]>[] = []
  let coming: Promise<void> | undefined
  let ended = false
  let failure: { error: unknown } | undefined
  const fail = (error: unknown) => {
    failure ??= { error }
    ended = true
    return []
  }
  const begin = async () => {
    const next = await source.next()
    if (next.done) ended = true
    else if (!ended) working.push(work(next.value).then(result => [result], fail))
  }
  for (;;) {
    if (!ended && working.length < atOnce)
      coming ??= begin()
        .catch(error => void fail(error))
        // Come of it what may: a promise that is settled already would be waited for without end, and nothing else would run.
        .finally(() => {
          coming = undefined
        })
    const first = working[0]
    if (!first && ended) break
    const results = await Promise.race([first, coming].filter(awaited => awaited !== undefined))
    if (!results) continue
    working.shift()
    yield* results
  }
  if (failure) throw failure.error
}
