import { buildUnreachableError, payloadOf } from './answer.ts'
import { eventsOf, type ServerEvent, textOfLines, uploadOf, valuesOf } from './ndjson.ts'
import { createWatchdog, type Watchdog } from './watchdog.ts'

/** The format of a response that is read while it arrives. */
export type StreamFormat<T> = {
  mediaType: string
  parse: (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<T, void, undefined>
  /** The maximum time in milliseconds between two chunks of the response. The default is the timeout of the client. */
  silenceMs?: number
}

/** Lines of JSON. */
export const ndjson: StreamFormat<unknown> = { mediaType: 'application/x-ndjson', parse: valuesOf }

/** Decodes a text in parts without splitting a character. */
async function* textsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true })
  yield decoder.decode()
}
export const htmlPage: StreamFormat<string> = { mediaType: 'text/html', parse: textsOf }
export const plainText: StreamFormat<string> = { mediaType: 'text/plain', parse: textsOf }

/** Server-sent events. kith sends a comment every 15 seconds, so a silent connection is a broken one. */
export const serverEvents: StreamFormat<ServerEvent> = {
  mediaType: 'text/event-stream',
  parse: eventsOf,
  silenceMs: 40_000,
}

/** The request of a stream. */
export type StreamCall<T> = {
  fetchFunction: typeof fetch
  method: 'GET' | 'POST'
  url: string
  headers: Headers
  format: StreamFormat<T>
  /** The maximum time in milliseconds until the response begins. */
  timeoutMs: number
  signal: AbortSignal | undefined
  /** A JSON body, for a request without lines. */
  body?: string | undefined
  lines: AsyncIterable<unknown> | Iterable<unknown> | undefined
  /** Whether the client collects the lines and sends them as one body. Browsers cannot stream a body over HTTP/1.1. */
  isBodyWhole: boolean
  /** Called with the response, before it is read. */
  onResponse: (response: Response) => void
}

/**
 * The values of a response as they arrive, while the lines are sent. Leaving the iteration aborts the request. Throws the
 * client's errors, the signal's reason, and the error that the source of the lines threw.
 */
export async function* valuesFrom<T>(call: StreamCall<T>): AsyncGenerator<T, void, undefined> {
  const { fetchFunction, method, url, headers, format, timeoutMs, signal, lines, isBodyWhole, onResponse } = call
  const text = lines && isBodyWhole ? await textOfLines(lines) : call.body
  const upload = lines === undefined || isBodyWhole ? undefined : uploadOf(lines)
  const watchdog = createWatchdog(signal)
  // fetch requires `half` for a streamed body. The response can nevertheless be read while the body is being sent.
  const bodyInit = upload ? ({ body: upload.stream, duplex: 'half' } as RequestInit) : { body: text ?? null }
  try {
    const response = await watchdog.within(
      fetchFunction(url, { method, headers, ...bodyInit, redirect: 'manual', signal: watchdog.signal }),
      timeoutMs,
    )
    onResponse(response)
    if (!response.ok || !isOf(response, format))
      return void payloadOf(response, await watchdog.within(response.text(), timeoutMs), Date.now())
    yield* format.parse(chunksOf(response, watchdog, format.silenceMs ?? timeoutMs))
  } catch (error) {
    const sourceError = upload?.sourceError()
    if (sourceError) throw sourceError.reason
    if (watchdog.signal.aborted) throw watchdog.signal.reason
    if (error instanceof Error && error.name.startsWith('Kith')) throw error
    throw buildUnreachableError(url, error)
  } finally {
    watchdog.end()
    upload?.end()
  }
}

const isOf = ({ headers }: Response, { mediaType }: Pick<StreamFormat<unknown>, 'mediaType'>) =>
  headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() === mediaType

async function* chunksOf(
  { body }: Response,
  watchdog: Watchdog,
  silenceMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body!.getReader()
  for (;;) {
    const { done, value } = await watchdog.within(reader.read(), silenceMs)
    if (done) return
    yield value
  }
}
