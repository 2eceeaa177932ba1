import pg from 'pg'

type Sending = pg.Connection & { sendCopyFromChunk(rows: Buffer): void; endCopyFrom(): void }

/**
 * A COPY whose rows are known: they follow the command at once, so it travels in one flush with others. Where the command
 * fails, the server passes over the rows that come all the same.
 */
class CopyFrom extends pg.Query {
  constructor(text: string, rows: string) {
    super(text)
    this.submit = connection => {
      connection.query(text)
      const sending = connection as Sending
      sending.sendCopyFromChunk(Buffer.from(rows))
      sending.endCopyFrom()
    }
  }

  handleCopyInResponse() {}
}

/** Runs a `copy … from stdin` on a connection. `key` becomes the first field of every line. */
export function copyFrom(client: pg.ClientBase, text: string, key: number, lines: string[]): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const copy = new CopyFrom(text, lines.map(line => `${key}\t${line}\n`).join(''))
    copy.on('end', resolve as () => void)
    copy.on('error', reject as () => void)
    client.query(copy)
  })
}

type Field = string | number | boolean | null | undefined

/** Fields as a line of COPY's text format; what is absent is null. */
export const copyLine = (...fields: Field[]): string => fields.map(copyField).join('\t')

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

function copyField(field: Field): string {
  if (field === null || field === undefined) return '\\N'
  return String(field).replace(/[\\\t\n\r]/g, character => escapes[character]!)
}
