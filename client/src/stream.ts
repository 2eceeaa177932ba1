import { payloadOf } from './answer.ts'
import { KithConnectionError, KithTimeoutError } from './errors.ts'
import { uploadOf, valuesOf } from './ndjson.ts'

/** The request of a stream. */
export type StreamCall = {
  fetchFunction: typeof fetch
  url: string
  headers: Headers
  /** The maximum time in milliseconds until the response begins, and between two chunks of it. */
  timeoutMs: number
  signal: AbortSignal | undefined
  lines: AsyncIterable<unknown> | Iterable<unknown> | undefined
}

/**
 * The values of an NDJSON response as they arrive, while the lines are sent. Leaving the iteration aborts the request.
 * Throws the client's errors, the signal's reason, and the error that the source of the lines threw.
 */
export async function* valuesFrom(call: StreamCall): AsyncGenerator<unknown, void, undefined> {
  const { fetchFunction, url, headers, timeoutMs, signal, lines } = call
  const upload = lines === undefined ? undefined : uploadOf(lines)
  const watchdog = createWatchdog(timeoutMs, signal)
  // fetch requires `half` for a streamed body. The response is nevertheless read while the body is being sent.
  const bodyInit = upload && ({ body: upload.stream, duplex: 'half' } as RequestInit)
  try {
    const response = await watchdog.within(
      fetchFunction(url, { method: 'POST', headers, ...bodyInit, redirect: 'error', signal: watchdog.signal }),
    )
    if (!response.ok || !isNdjson(response)) return void payloadOf(response, await response.text(), Date.now())
    yield* valuesOf(chunksOf(response, watchdog))
  } catch (error) {
    const sourceError = upload?.sourceError()
    if (sourceError) throw sourceError.reason
    if (watchdog.signal.aborted) throw watchdog.signal.reason
    if (error instanceof Error && error.name.startsWith('Kith')) throw error
    const { host } = new URL(url)
    throw new KithConnectionError(`${host} cannot be reached, or the connection broke.`, { cause: error })
  } finally {
    watchdog.end()
    upload?.end()
  }
}

const isNdjson = ({ headers }: Response) => /^application\/x-ndjson\b/i.test(headers.get('content-type') ?? '')

async function* chunksOf({ body }: Response, watchdog: Watchdog): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body!.getReader()
  for (;;) {
    const { done, value } = await watchdog.within(reader.read())
    if (done) return
    yield value
  }
}

type Watchdog = { signal: AbortSignal; within<T>(work: Promise<T>): Promise<T>; end(): void }

/** Aborts with the caller's signal, and if a wait exceeds the timeout. The time between two waits does not count. */
function createWatchdog(timeoutMs: number, signal: AbortSignal | undefined): Watchdog {
  const controller = new AbortController()
  const stop = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  return {
    signal: controller.signal,
    async within(work) {
      const timer = setTimeout(() => controller.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
      return work.finally(() => clearTimeout(timer))
    },
    end() {
      signal?.removeEventListener('abort', stop)
      controller.abort()
    },
  }
}
