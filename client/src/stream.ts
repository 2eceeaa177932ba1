import { payloadOf } from './answer.ts'
import { KithConnectionError, KithTimeoutError } from './errors.ts'
import { uploadOf, valuesOf } from './ndjson.ts'

/** Where a stream is asked for, and how patiently. */
export type Asking = {
  ask: typeof fetch
  url: string
  headers: Headers
  /** The longest silence: until the answer begins, and between two pieces of it. */
  timeoutMs: number
  signal: AbortSignal | undefined
  lines: AsyncIterable<unknown> | Iterable<unknown> | undefined
}

/**
 * The values of an NDJSON answer, as they arrive, while the lines are sent. Whoever stops reading ends the request.
 * Rejects as a call does, with the signal's reason, and with what the source of the lines threw.
 */
export async function* valuesFrom(asking: Asking): AsyncGenerator<unknown, void, undefined> {
  const { ask, url, headers, timeoutMs, signal, lines } = asking
  const upload = lines === undefined ? undefined : uploadOf(lines)
  const watch = watchOver(timeoutMs, signal)
  // Half means that the answer need not be awaited with the body unsent; it is read while the body is sent all the same.
  const sending = upload && ({ body: upload.stream, duplex: 'half' } as RequestInit)
  try {
    const response = await watch.within(
      ask(url, { method: 'POST', headers, ...sending, redirect: 'error', signal: watch.signal }),
    )
    if (!response.ok || !isNdjson(response)) return void payloadOf(response, await response.text(), Date.now())
    yield* valuesOf(piecesOf(response, watch))
  } catch (error) {
    const source = upload?.failed()
    if (source) throw source.reason
    if (watch.signal.aborted) throw watch.signal.reason
    if (error instanceof Error && error.name.startsWith('Kith')) throw error
    const { host } = new URL(url)
    throw new KithConnectionError(`${host} cannot be reached, or the connection broke.`, { cause: error })
  } finally {
    watch.end()
    upload?.end()
  }
}

const isNdjson = ({ headers }: Response) => /^application\/x-ndjson\b/i.test(headers.get('content-type') ?? '')

async function* piecesOf({ body }: Response, watch: Watch): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body!.getReader()
  for (;;) {
    const { done, value } = await watch.within(reader.read())
    if (done) return
    yield value
  }
}

type Watch = { signal: AbortSignal; within<T>(answer: Promise<T>): Promise<T>; end(): void }

/** Aborts with the caller's signal, and when an answer takes too long; the time between two of them does not count. */
function watchOver(timeoutMs: number, signal: AbortSignal | undefined): Watch {
  const ending = new AbortController()
  const stop = () => ending.abort(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  return {
    signal: ending.signal,
    async within(answer) {
      const timer = setTimeout(() => ending.abort(new KithTimeoutError(timeoutMs)), timeoutMs)
      return answer.finally(() => clearTimeout(timer))
    },
    end() {
      signal?.removeEventListener('abort', stop)
      ending.abort()
    },
  }
}
