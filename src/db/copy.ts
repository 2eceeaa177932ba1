import pg from 'pg'
import type { CopyRows } from './copy-rows.ts'
import { clearWarning } from './warnings.ts'

type Sending = pg.Connection & { _send(message: Buffer): void }

/**
 * A COPY whose rows are known: they follow the command at once, so it travels in one flush with others. Where the command
 * fails, the server passes over the rows that come all the same.
 */
class CopyFrom extends pg.Query {
  constructor(text: string, rows: CopyRows) {
    super(text)
    this.submit = connection => {
      connection.query(text)
      const sending = connection as Sending
      sending._send(rows.message())
    }
  }

  handleCopyInResponse() {}
}

/** Runs a `copy … from stdin (format binary)` on a connection, within a transaction. */
export function copyFrom(client: pg.ClientBase, text: string, rows: CopyRows): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const copy = new CopyFrom(text, rows)
    copy.on('end', result => {
      clearWarning(client)
      resolve(result as unknown as pg.QueryResult)
    })
    copy.on('error', reject as () => void)
    client.query(copy)
  })
}

/** Is given a row, which stands in the bytes from `start` on, for as long as it runs. Answers whether it has enough for now. */
export type TakeRow = (bytes: Buffer, start: number) => boolean

export type CopyingOut = {
  /** Reads on, until there is enough: true; or no more: false. Rejects with the error of the database. */
  readOn(): Promise<boolean>
}

type Arriving = { stream: { pause(): void; resume(): void } }

// https://www.postgresql.org/docs/current/sql-copy.html: before the first row a signature, flags and the length of nothing;
// before each row a count of fields, and the length of each; behind the last a count alone.
const headerBytes = 19
const countBytes = 2
const lengthBytes = 4

/** A COPY whose rows are handed on as they arrive. */
class CopyTo extends pg.Query {
  readonly #take: (bytes: Buffer, start: number) => void
  #begun = false

  constructor(text: string, take: (bytes: Buffer, start: number) => void) {
    super(text)
    this.#take = take
  }

  handleCopyData({ chunk }: { chunk: Buffer }) {
    const start = this.#begun ? 0 : headerBytes
    this.#begun = true
    if (chunk.length > start + countBytes) this.#take(chunk, start + countBytes + lengthBytes)
  }
}

/**
 * Runs a `copy … to stdout (format binary)` of one field on a connection. No more is read of it than somebody asks for: the
 * database waits then.
 */
export function copyTo(client: pg.ClientBase, text: string, take: TakeRow): CopyingOut {
  const { stream } = (client as unknown as { connection: Arriving }).connection
  let waiting: PromiseWithResolvers<boolean> | undefined
  let ending: Promise<boolean> | undefined
  const end = (how: Promise<boolean>) => {
    how.catch(() => {})
    ending ??= how
    waiting?.resolve(how)
    // Whoever ends the connection wants to hear of it.
    stream.resume()
  }
  const copy = new CopyTo(text, (bytes, start) => {
    if (ending) return
    try {
      if (!take(bytes, start)) return
    } catch (error) {
      return end(Promise.reject(error))
    }
    // What has been read with it is handed on all the same.
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
