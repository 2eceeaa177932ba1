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
    const rows = lines.length === 0 ? '' : `${key}\t${lines.join(`\n${key}\t`)}\n`
    const copy = new CopyFrom(text, rows)
    copy.on('end', resolve as () => void)
    copy.on('error', reject as () => void)
    client.query(copy)
  })
}

type Field = string | number | boolean | null | undefined

/** Fields as a line of COPY's text format; what is absent is null. */
export function copyLine(...fields: Field[]): string {
  let line = copyField(fields[0])
  for (let at = 1; at < fields.length; at += 1) line += `\t${copyField(fields[at])}`
  return line
}

const special = /[\\\t\n\r]/
const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const escapeAll = (text: string) => text.replace(/[\\\t\n\r]/g, character => escapes[character]!)

function copyField(field: Field): string {
  if (field === null || field === undefined) return '\\N'
  const text = String(field)
  // A call of `replace` costs more than all else that is done for a field, and few have anything to escape.
  return special.test(text) ? escapeAll(text) : text
}
