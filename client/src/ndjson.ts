import { encode } from './json.ts'

/** Lines are sent in pieces of about this size: a write for every line costs more than the line. */
const pieceCharacters = 32_768
/** How long a line waits for others to be sent with. */
const longestWaitMs = 50

/** What is to be sent, line by line, drawn from its source no faster than the connection takes it. */
export type Upload = {
  stream: ReadableStream<Uint8Array>
  /** What the source itself threw, in an object; null while it has not. */
  failed(): { reason: unknown } | null
  /** Lets go of the source, as soon as it has given what it was asked for last. */
  end(): void
}

/** Bodies as NDJSON. A text is a line as it stands. */
export function uploadOf(lines: AsyncIterable<unknown> | Iterable<unknown>): Upload {
  const pieces = piecesOf(lines)
  const encoder = new TextEncoder()
  let failure: { reason: unknown } | null = null
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    } catch (reason) {
      failure = { reason }
      controller.error(reason)
    }
  }
  const end = () => void pieces.return().catch(() => {})
  return { stream: new ReadableStream({ pull, cancel: end }, { highWaterMark: 0 }), failed: () => failure, end }
}

async function* piecesOf(lines: AsyncIterable<unknown> | Iterable<unknown>): AsyncGenerator<string, void, undefined> {
  const iterator = iteratorOf(lines)
  try {
    let next = iterator.next()
    for (;;) {
      const first = await next
      if (first.done) return
      let piece = textOf(first.value)
      const due = after(longestWaitMs)
      for (next = iterator.next(); piece.length < pieceCharacters; next = iterator.next()) {
        const line = await Promise.race([next, due.promise])
        if (line === 'due' || line.done) break
        piece += textOf(line.value)
      }
      due.cancel()
      yield piece
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

/** The values of NDJSON that arrives in pieces. Text after the last line end is no line: the stream was cut there. */
export async function* valuesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield JSON.parse(line)
  }
  if (rest !== '') throw new SyntaxError('the last line has no end')
}
