import { encode } from './json.ts'

/** Lines are sent in chunks of about this size, because a separate write costs more than a line. */
const chunkCharacters = 32_768
/** The maximum time that a line waits for further lines of its chunk. */
const maxWaitMs = 50

/** A request body of lines. Back-pressure limits the reading of their source. */
export type Upload = {
  stream: ReadableStream<Uint8Array>
  /** The error that the source threw, wrapped in an object. Null if it threw none. */
  sourceError(): { reason: unknown } | null
  /** Closes the source after its pending read. */
  end(): void
}

/** Encodes values as an NDJSON stream. A string is sent as a line unchanged. */
export function uploadOf(lines: AsyncIterable<unknown> | Iterable<unknown>): Upload {
  const chunks = chunksOf(lines)
  const encoder = new TextEncoder()
  let failure: { reason: unknown } | null = null
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    } catch (reason) {
      failure = { reason }
      controller.error(reason)
    }
  }
  const end = () => void chunks.return().catch(() => {})
  return { stream: new ReadableStream({ pull, cancel: end }, { highWaterMark: 0 }), sourceError: () => failure, end }
}

/** Collects all lines into the text of a body. */
export async function textOfLines(lines: AsyncIterable<unknown> | Iterable<unknown>): Promise<string> {
  let text = ''
  for await (const line of lines) text += textOf(line)
  return text
}

async function* chunksOf(lines: AsyncIterable<unknown> | Iterable<unknown>): AsyncGenerator<string, void, undefined> {
  const iterator = iteratorOf(lines)
  try {
    let next = iterator.next()
    for (;;) {
      const first = await next
      if (first.done) return
      let chunk = textOf(first.value)
      const due = after(maxWaitMs)
      for (next = iterator.next(); chunk.length < chunkCharacters; next = iterator.next()) {
        const line = await Promise.race([next, due.promise])
        if (line === 'due' || line.done) break
        chunk += textOf(line.value)
      }
      due.cancel()
      // The source may fail while the chunk waits for back-pressure. Its error is thrown after the chunk was taken.
      Promise.resolve(next).catch(() => {})
      yield chunk
    }
  } finally {
    await iterator.return?.()
  }
}

const textOf = (line: unknown): string => `${typeof line === 'string' ? line : encode(line)}\n`

function iteratorOf<T>(lines: AsyncIterable<T> | Iterable<T>): AsyncIterator<T> | Iterator<T> {
  return Symbol.asyncIterator in lines ? lines[Symbol.asyncIterator]() : lines[Symbol.iterator]()
}

function after(milliseconds: number): { promise: Promise<'due'>; cancel(): void } {
  let timer: ReturnType<typeof setTimeout>
  const promise = new Promise<'due'>(resolve => {
    timer = setTimeout(resolve, milliseconds, 'due')
  })
  return { promise, cancel: () => clearTimeout(timer) }
}

/** Parses the values of an NDJSON stream. Throws a SyntaxError if the last line is incomplete. */
export async function* valuesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  const rest = yield* parsedParts(chunks, '\n', line => (line === '' ? [] : [JSON.parse(line)]))
  if (rest !== '') throw new SyntaxError('the last line is incomplete')
}

/** A block of server-sent events. `data` is parsed. A comment has no `data`, and may have an `id`. */
export type ServerEvent = { id?: string; data?: unknown }

/**
 * Parses server-sent events as kith sends them: a line feed ends each line, and `data` is one line of JSON. An incomplete
 * block at the end is discarded, as the HTML Living Standard says. Throws a SyntaxError for other data.
 */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent, void, undefined> {
  yield* parsedParts(chunks, '\n\n', block => [eventOf(block)])
}

function eventOf(block: string): ServerEvent {
  const event: ServerEvent = {}
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) event.id = line.slice(4)
    if (line.startsWith('data: ')) event.data = JSON.parse(line.slice(6))
  }
  return event
}

/**
 * Yields the parsed value of each part that ends with the separator, and returns the rest behind the last separator.
 */
async function* parsedParts<T>(
  chunks: AsyncIterable<Uint8Array>,
  separator: string,
  parse: (part: string) => T[],
): AsyncGenerator<T, string, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(separator)
    rest = parts.pop() ?? ''
    for (const part of parts) yield* parse(part)
  }
  return rest
}
