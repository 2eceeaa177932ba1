// https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format": a signature, flags and the length of an empty header
// extension. Each row is a count of fields, then the length and the bytes of each field. A count of -1 ends the rows.
// CopyData and CopyDone carry them: https://www.postgresql.org/docs/current/protocol-message-formats.html.
const opening = Buffer.from('d\0\0\0\0PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const closing = Buffer.from('\xff\xffc\0\0\0\x04', 'latin1')
const copyDoneBytes = 5

const countBytes = 2
const lengthBytes = 4
const uuidBytes = 16
const maxBytesPerUnit = 3
const jsonbVersion = 1
/** Up to this length, a loop over the characters is faster than a call into Node's native code. */
const shortTextLength = 48
/** The initial size of a row. Hardly one person in a thousand needs more. */
const initialRowBytes = 640

const year2000Ms = Date.UTC(2000)

/**
 * Rows for a `copy … from stdin (format binary)`, written field after field into one buffer. In text format, the strings of
 * fields, rows and sets were a third of an import's garbage. The binary format also saves PostgreSQL 0.8 µs per row, because it
 * does not parse numbers, times and identifiers. A field must have the type of its column. `key` is the first field of each row.
 */
export class CopyRows {
  readonly key: number
  readonly #fields: number
  #bytes: Buffer
  #end: number

  /** `fields`: the number of fields of a row, including the key. `rows`: the approximate number of rows. */
  constructor(key: number, fields: number, rows: number) {
    this.key = key
    this.#fields = fields
    this.#bytes = Buffer.allocUnsafe((rows + 1) * initialRowBytes)
    this.#end = opening.copy(this.#bytes)
  }

  /** Begins the next row. */
  begin(): void {
    this.#makeRoom(countBytes)
    this.#end = this.#bytes.writeInt16BE(this.#fields, this.#end)
    this.integer(this.key)
  }

  null(): void {
    this.#makeRoom(lengthBytes)
    this.#end = this.#bytes.writeInt32BE(-1, this.#end)
  }

  /** An integer of 4 bytes. */
  integer(value: number): void {
    this.#makeRoom(lengthBytes + 4)
    this.#end = this.#bytes.writeInt32BE(value, this.#bytes.writeInt32BE(4, this.#end))
  }

  boolean(value: boolean | null | undefined): void {
    if (value === null || value === undefined) this.null()
    else {
      this.#makeRoom(lengthBytes + 1)
      this.#end = this.#bytes.writeUInt8(value ? 1 : 0, this.#bytes.writeInt32BE(1, this.#end))
    }
  }

  /** An integer of 8 bytes, up to 2^53. */
  bigint(value: number): void {
    this.#makeRoom(lengthBytes + 8)
    const high = Math.floor(value / 2 ** 32)
    const at = this.#bytes.writeInt32BE(high, this.#bytes.writeInt32BE(8, this.#end))
    this.#end = this.#bytes.writeUInt32BE(value - high * 2 ** 32, at)
  }

  /** A timestamptz, in milliseconds since 1970. A double holds its microseconds exactly up to the year 2285. */
  time(ms: number): void {
    this.bigint((ms - year2000Ms) * 1_000)
  }

  /** A UUID as text, with hyphens. */
  uuid(value: string): void {
    this.#makeRoom(lengthBytes + uuidBytes)
    let at = this.#bytes.writeInt32BE(uuidBytes, this.#end)
    for (let index = 0; index < value.length; index += 2) {
      if (value.charCodeAt(index) === hyphen) index += 1
      this.#bytes[at++] = (hexValue(value.charCodeAt(index)) << 4) | hexValue(value.charCodeAt(index + 1))
    }
    this.#end = at
  }

  text(value: string | null | undefined): void {
    if (value === null || value === undefined) this.null()
    else this.#text(value, 0)
  }

  /** A jsonb value, as JSON text. */
  json(text: string | null): void {
    if (text === null) this.null()
    else this.#text(text, 1)
  }

  /** The messages that follow the COPY command, with all rows. Call it once. */
  message(): Buffer {
    this.#makeRoom(closing.length)
    this.#end += closing.copy(this.#bytes, this.#end)
    this.#bytes.writeInt32BE(this.#end - copyDoneBytes - 1, 1)
    return this.#bytes.subarray(0, this.#end)
  }

  /** A text, after the version byte of jsonb if `versionBytes` is 1. */
  #text(text: string, versionBytes: 0 | 1): void {
    this.#makeRoom(lengthBytes + versionBytes + maxBytesPerUnit * text.length)
    const start = this.#end + lengthBytes
    if (versionBytes) this.#bytes[start] = jsonbVersion
    const end = this.#writeText(text, start + versionBytes)
    this.#bytes.writeInt32BE(end - start, this.#end)
    this.#end = end
  }

  /** Returns the offset behind the text. */
  #writeText(text: string, start: number): number {
    if (text.length > shortTextLength) return start + this.#bytes.write(text, start)
    let at = start
    for (let index = 0; index < text.length; index += 1) {
      const unit = text.charCodeAt(index)
      if (unit > 127) return start + this.#bytes.write(text, start)
      this.#bytes[at++] = unit
    }
    return at
  }

  #makeRoom(bytes: number): void {
    if (this.#end + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#end + bytes))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

const hyphen = 45

/** The value of a hexadecimal digit, from its character code in either case. */
const hexValue = (code: number) => (code < 58 ? code - 48 : (code | 32) - 87)
