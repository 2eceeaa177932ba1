const [quote, plus, close, comma, dot, zero, letterT, letterZ, backslash] = [34, 43, 41, 44, 46, 48, 84, 90, 92]
const [lineFeed, letterTrue, brace] = [10, 116, 123]

/** The bytes that a field of a row and a JSON string both hold as they are, those of characters beyond ASCII among them. */
const plain = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 32 && ![quote, close, comma, backslash].includes(code) ? 1 : 0,
)

const [nothing, yes, no] = ['null', 'true', 'false'].map(word => Buffer.from(word)) as [Buffer, Buffer, Buffer]

/** Control characters as JSON writes them. */
const controls = Array.from({ length: 32 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** From here on bytes are copied by a call, which costs what so many do one by one. */
const long = 48

// A page of 50 people takes 28 kB.
const roomBytes = 64 * 1024
const mostKeptBytes = 2 * 1024 * 1024

/**
 * Prints entities as JSON out of the text of their rows (`row_text`), field by field and byte by byte, into room that is used
 * again: slices of the text put together took four times as long and left garbage. A method that is given a key prints it, and
 * behind it what stands next in the row.
 */
export class RowPrinter {
  /** What is printed, in UTF-8. */
  #rows: Buffer = Buffer.alloc(0)
  #rows_end = 0
  /** For rows that come as a text. */
  #rows_room = Buffer.allocUnsafeSlow(roomBytes)
  /** Before the next field: at `(` or at a comma. Between entities, where the next one begins. */
  #at = 0
  /** Where the attributes and the row of this entity begin. */
  #attributes_at = 0
  #row_at = 0
  #room = Buffer.allocUnsafeSlow(roomBytes)
  #end = 0

  /** Begins anew, with nothing printed: what {@link bytes} showed is written over. Room of unusual size is let go. */
  start(): this {
    this.#end = 0
    if (this.#room.length > mostKeptBytes) this.#room = Buffer.allocUnsafeSlow(roomBytes)
    if (this.#rows_room.length > mostKeptBytes) this.#rows_room = Buffer.allocUnsafeSlow(roomBytes)
    return this.read(this.#rows_room, 0)
  }

  /** Takes rows, one behind the other with line feeds between them, in place of those before. The bytes are not copied. */
  read(rows: Buffer, end = rows.length, start = 0): this {
    this.#rows = rows
    this.#rows_end = end
    this.#at = start
    return this
  }

  /** The same of rows as a text. */
  readText(rows: string): this {
    // No unit of the text takes more than three bytes; to count those of a long text costs less than three times the memory.
    const mostBytes = rows.length > roomBytes ? Buffer.byteLength(rows) : 3 * rows.length
    if (mostBytes > this.#rows_room.length) this.#rows_room = Buffer.allocUnsafeSlow(mostBytes)
    return this.read(this.#rows_room, this.#rows_room.write(rows))
  }

  /** Whether another entity follows. */
  get more(): boolean {
    return this.#at < this.#rows_end
  }

  /** Whether the next entity is there with its row, which begins with its attributes; of another there is the id alone. */
  get isWhole(): boolean {
    return this.#rows[this.#at] === brace
  }

  /** All that was printed. */
  get json(): string {
    return this.#room.toString('utf8', 0, this.#end)
  }

  /** How many bytes that is. */
  get size(): number {
    return this.#end
  }

  /** The same, until the next start. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#end)
  }

  /**
   * Has the next entity printed. What finds no room is lost, and all of the entity printed once more where there is enough.
   * A byte is left for what stands between two.
   */
  next(print: (row: RowPrinter) => void): void {
    const [from, begun] = [this.#at, this.#end]
    this.#open(from)
    print(this)
    if (this.#end >= this.#room.length) {
      const room = Buffer.allocUnsafeSlow(2 * this.#end)
      this.#room.copy(room, 0, 0, begun)
      this.#room = room
      this.#end = begun
      this.#open(from)
      print(this)
    }
    this.#at += 2
  }

  #open(from: number) {
    this.#attributes_at = from
    this.#row_at = this.#rows.indexOf(lineFeed, from) + 1
    this.#at = this.#row_at
  }

  /** The bytes alone. */
  put(bytes: Buffer): void {
    this.#copy(bytes, 0, bytes.length)
  }

  /** A text alone. */
  copy(text: string): void {
    const room = this.#room
    // No unit of the text takes more than three bytes.
    if (this.#end + 3 * text.length > room.length) this.put(Buffer.from(text))
    else this.#end += room.write(text, this.#end)
  }

  #copy(bytes: Buffer, from: number, to: number) {
    const room = this.#room
    let end = this.#end
    if (to - from < long) for (let at = from; at < to; at += 1) room[end++] = bytes[at]!
    else {
      if (end + to - from <= room.length) bytes.copy(room, end, from, to)
      end += to - from
    }
    this.#end = end
  }

  /** The attributes of the entity, which are JSON. */
  get attributes(): string {
    return this.#rows.toString('utf8', this.#attributes_at, this.#row_at - 1)
  }

  copyAttributes(): void {
    this.#copy(this.#rows, this.#attributes_at, this.#row_at - 1)
  }

  /** A field that needs no quotes in a row: a number, an identifier. */
  bare(key: Buffer): void {
    this.put(key)
    const [rows, room] = [this.#rows, this.#room]
    let [at, end] = [this.#at + 1, this.#end]
    for (let code = rows[at]!; code !== comma && code !== close; code = rows[++at]!) room[end++] = code
    this.#at = at
    this.#end = end
  }

  /** A boolean, or null. */
  flag(key: Buffer): void {
    this.put(key)
    const code = this.#rows[this.#at + 1]
    if (code === comma || code === close) {
      this.#at += 1
      this.put(nothing)
      return
    }
    this.#at += 2
    this.put(code === letterTrue ? yes : no)
  }

  /** A time, `"2026-01-01 12:00:00.123456+00"` in the row, in RFC 3339 with milliseconds. */
  moment(key: Buffer): void {
    this.put(key)
    const [rows, room] = [this.#rows, this.#room]
    let [at, end] = [this.#at + 2, this.#end]
    for (const dateEnd = at + 10; at < dateEnd; at += 1) room[end++] = rows[at]!
    room[end++] = letterT
    at += 1
    for (const timeEnd = at + 8; at < timeEnd; at += 1) room[end++] = rows[at]!
    room[end++] = dot
    if (rows[at] === dot) at += 1
    for (let digits = 0; digits < 3; digits += 1) room[end++] = rows[at] === plus ? zero : rows[at++]!
    room[end++] = letterZ
    while (rows[at] !== quote) at += 1
    this.#at = at + 1
    this.#end = end
  }

  /** A text, or null. */
  text(key: Buffer): void {
    this.put(key)
    const code = this.#rows[this.#at + 1]
    if (code === comma || code === close) {
      this.#at += 1
      this.put(nothing)
    } else if (code === quote) this.#quotedText()
    else this.#bareText()
  }

  #bareText() {
    const [rows, room] = [this.#rows, this.#room]
    let [at, end] = [this.#at + 1, this.#end]
    room[end++] = quote
    for (let code = rows[at]!; code !== comma && code !== close; code = rows[++at]!) {
      if (code >= 32) room[end++] = code
      else end = putControl(code, room, end)
    }
    room[end++] = quote
    this.#at = at
    this.#end = end
  }

  #quotedText() {
    const [rows, room] = [this.#rows, this.#room]
    let [at, end] = [this.#at + 2, this.#end]
    room[end++] = quote
    for (let code = rows[at]!; ; code = rows[++at]!) {
      if (plain[code] === 1 || code === comma || code === close) room[end++] = code
      else if (code === quote || code === backslash) {
        // In a row both are doubled within quotes; a quote that is not ends them.
        at += 1
        if (code === quote && rows[at] !== quote) break
        room[end++] = backslash
        room[end++] = code
      } else end = putControl(code, room, end)
    }
    room[end++] = quote
    this.#at = at
    this.#end = end
  }

  /** Leaves so many fields out. */
  pass(fields: number): void {
    for (let count = 0; count < fields; count += 1) this.#pass()
  }

  /** Leaves the next field out where these bytes are all of it. Answers whether they are. */
  passes(bytes: Buffer): boolean {
    const rows = this.#rows
    const start = this.#at + 1
    for (let index = 0; index < bytes.length; index += 1) if (rows[start + index] !== bytes[index]) return false
    const after = rows[start + bytes.length]
    if (after !== comma && after !== close) return false
    this.#at = start + bytes.length
    return true
  }

  /** The next field itself, which is not printed. */
  value(): string | null {
    const start = this.#at + 1
    this.#pass()
    if (this.#at === start) return null
    if (this.#rows[start] !== quote) return this.#rows.toString('utf8', start, this.#at)
    const value = this.#rows.toString('utf8', start + 1, this.#at - 1).replaceAll('""', '"')
    return value.includes('\\') ? value.replaceAll('\\\\', '\\') : value
  }

  #pass() {
    const rows = this.#rows
    let at = this.#at + 1
    let code = rows[at]!
    if (code !== quote) while (code !== comma && code !== close) code = rows[++at]!
    else
      for (code = rows[++at]!; ; code = rows[++at]!) {
        if (code !== quote && code !== backslash) continue
        at += 1
        if (code === quote && rows[at] !== quote) break
      }
    this.#at = at
  }
}

/** Writes a control character as JSON writes it. Answers where it ends. */
function putControl(code: number, room: Uint8Array, start: number): number {
  const escaped = controls[code]!
  let end = start
  for (let index = 0; index < escaped.length; index += 1) room[end++] = escaped[index]!
  return end
}
