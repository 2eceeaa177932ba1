import pg from 'pg'

/** Takes one row: the bytes from `start` on, valid only during the call. Returns true to pause the COPY. */
export type TakeRow = (bytes: Buffer, start: number) => boolean

export type CopyingOut = {
  /** Reads until a row pauses the COPY (true) or the rows end (false). Rejects with the database's error. */
  readOn(): Promise<boolean>
}

type Pausable = { stream: { pause(): void; resume(): void } }

// https://www.postgresql.org/docs/current/sql-copy.html: a signature, flags and the length of an empty header extension precede
// the first row. Each row is a count of fields, then the length and the bytes of each field. A count alone follows the last row.
const headerBytes = 19
const countBytes = 2
const lengthBytes = 4

/** A COPY that passes on each row as it arrives. */
class CopyTo extends pg.Query {
  readonly #take: (bytes: Buffer, start: number) => void
  #isPastHeader = false

  constructor(text: string, take: (bytes: Buffer, start: number) => void) {
    super(text)
    this.#take = take
  }

  handleCopyData({ chunk }: { chunk: Buffer }) {
    const start = this.#isPastHeader ? 0 : headerBytes
    this.#isPastHeader = true
    if (chunk.length > start + countBytes) this.#take(chunk, start + countBytes + lengthBytes)
  }
}

/**
 * Runs a `copy … to stdout (format binary)` of one field on a connection. When `take` returns true, the socket is paused until the
 * next `readOn`, and back-pressure makes the database wait.
 */
export function copyTo(client: pg.ClientBase, text: string, take: TakeRow): CopyingOut {
  const { stream } = (client as unknown as { connection: Pausable }).connection
  let waiting: PromiseWithResolvers<boolean> | undefined
  let ending: Promise<boolean> | undefined
  const end = (outcome: Promise<boolean>) => {
    outcome.catch(() => {})
    ending ??= outcome
    waiting?.resolve(outcome)
    // The end of the connection is noticed only while the socket is read.
    stream.resume()
  }
  const copy = new CopyTo(text, (bytes, start) => {
    if (ending) return
    try {
      if (!take(bytes, start)) return
    } catch (error) {
      return end(Promise.reject(error))
    }
    // Rows that were already received are still passed on.
    stream.pause()
    waiting?.resolve(true)
  })
  copy.on('end', () => end(Promise.resolve(false)))
  copy.on('error', error => end(Promise.reject(error)))
  client.query(copy)
  return {
    readOn: () => {
      if (ending) return ending
      waiting = Promise.withResolvers()
      stream.resume()
      return waiting.promise
    },
  }
}
