const [quote, plus, close, comma, dot, zero, letterT, letterZ, backslash] = [34, 43, 41, 44, 46, 48, 84, 90, 92]
const [lineFeed, space, openBracket, closeBracket, letterTrue, brace, closeBrace] = [10, 32, 91, 93, 116, 123, 125]

/** 1 for each byte that needs no escape in a row field or in a JSON string. That includes all bytes above ASCII. */
const isPlain = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 32 && ![quote, close, comma, backslash].includes(code) ? 1 : 0,
)

const [jsonNull, jsonTrue, jsonFalse] = [Buffer.from('null'), Buffer.from('true'), Buffer.from('false')]

/** The JSON escapes of the control characters. */
const controlEscapes = Array.from({ length: 32 }, (_, code) =>
  Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1)),
)

/** From this length on, `Buffer.copy` is faster than a loop over the bytes. */
const minCopyBytes = 48

// A page of 50 people needs 28 kB.
const initialBytes = 64 * 1024
/** The length of an identifier in a row. */
const uuidCharacters = 36
const maxRetainedBytes = 2 * 1024 * 1024

/**
 * Prints entities as JSON from the text of their rows (`rowText` in read-sql.ts), field by field and byte by byte, into
 * a buffer that is reused. Concatenating slices of the text took four times as long and left garbage. A method that
 * takes a key prints the key and then the next field of the row.
 */
export class RowPrinter {
  /** The rows to print, in UTF-8. */
  #rows: Buffer = Buffer.alloc(0)
  #rowsEnd = 0
  /** Holds rows that arrive as a string. */
  #textBuffer = Buffer.allocUnsafeSlow(initialBytes)
  /** Offset of the `(` or comma before the next field. Between entities: offset of the next entity. */
  #offset = 0
  /** Offsets of the attributes and of the row of the current entity. */
  #attributesStart = 0
  #rowStart = 0
  #buffer = Buffer.allocUnsafeSlow(initialBytes)
  #length = 0

  /** Clears the output. The next output overwrites what {@link bytes} returned. Frees buffers of unusual size. */
  start(): this {
    this.#length = 0
    if (this.#buffer.length > maxRetainedBytes) this.#buffer = Buffer.allocUnsafeSlow(initialBytes)
    if (this.#textBuffer.length > maxRetainedBytes) this.#textBuffer = Buffer.allocUnsafeSlow(initialBytes)
    return this.setRows(this.#textBuffer, 0)
  }

  /** Sets the rows to print, separated by line feeds. The bytes are not copied. */
  setRows(rows: Buffer, end = rows.length, start = 0): this {
    this.#rows = rows
    this.#rowsEnd = end
    this.#offset = start
    return this
  }

  /** Sets the rows to print from a string. */
  setText(rows: string): this {
    // A UTF-16 unit takes at most three bytes. For a long string, counting the bytes costs less than three times the
    // memory.
    const maxBytes = rows.length > initialBytes ? Buffer.byteLength(rows) : 3 * rows.length
    if (maxBytes > this.#textBuffer.length) this.#textBuffer = Buffer.allocUnsafeSlow(maxBytes)
    return this.setRows(this.#textBuffer, this.#textBuffer.write(rows))
  }

  /** Whether another entity follows. */
  get hasMore(): boolean {
    return this.#offset < this.#rowsEnd
  }

  /** Whether the next entity has its row, which starts with the attributes. Otherwise only its id is present. */
  get isWhole(): boolean {
    return this.#rows[this.#offset] === brace
  }

  /** The identifier of the current entity, which begins its row. */
  get id(): string {
    return this.#rows.toString('latin1', this.#rowStart + 1, this.#rowStart + 1 + uuidCharacters)
  }

  /**
   * The identifiers of the entities that follow, with their rows or without, up to `size`. `fields` is the number of
   * fields of a row. Nothing is printed.
   */
  readIds(size: number, fields: number): string[] {
    const ids: string[] = []
    while (this.hasMore && ids.length < size) {
      const isWhole = this.isWhole
      if (isWhole) this.#open(this.#offset)
      else this.#rowStart = this.#offset - 1
      ids.push(this.id)
      if (isWhole) this.skip(fields)
      this.#offset = isWhole ? this.#offset + 2 : this.#offset + uuidCharacters + 1
    }
    return ids
  }

  /** The output as a string. */
  get json(): string {
    return this.#buffer.toString('utf8', 0, this.#length)
  }

  /** Size of the output in bytes. */
  get size(): number {
    return this.#length
  }

  /** The output as bytes. They are valid until the next {@link start}. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /**
   * Prints the next entity with `print`. If the output overflows the buffer, the buffer grows and the entity is printed
   * again. One byte stays free for a separator.
   */
  printNext(print: (row: RowPrinter) => void): void {
    const [from, outputStart] = [this.#offset, this.#length]
    this.#open(from)
    print(this)
    if (this.#length >= this.#buffer.length) {
      const buffer = Buffer.allocUnsafeSlow(2 * this.#length)
      this.#buffer.copy(buffer, 0, 0, outputStart)
      this.#buffer = buffer
      this.#length = outputStart
      this.#open(from)
      print(this)
    }
    this.#offset += 2
  }

  #open(from: number) {
    this.#attributesStart = from
    this.#rowStart = this.#rows.indexOf(lineFeed, from) + 1
    this.#offset = this.#rowStart
  }

  /** Takes the closing brace of the printed object back, so that more members can follow. */
  reopen(): void {
    this.#length -= 1
  }

  /** Appends bytes as they are. */
  append(bytes: Buffer): void {
    this.#copy(bytes, 0, bytes.length)
  }

  /** Appends a string as it is. */
  appendText(text: string): void {
    const buffer = this.#buffer
    // A UTF-16 unit takes at most three bytes.
    if (this.#length + 3 * text.length > buffer.length) this.append(Buffer.from(text))
    else this.#length += buffer.write(text, this.#length)
  }

  #copy(bytes: Buffer, from: number, to: number) {
    const buffer = this.#buffer
    let end = this.#length
    if (to - from < minCopyBytes) for (let at = from; at < to; at += 1) buffer[end++] = bytes[at]!
    else {
      if (end + to - from <= buffer.length) bytes.copy(buffer, end, from, to)
      end += to - from
    }
    this.#length = end
  }

  /** The attributes of the entity, as JSON text. */
  get attributes(): string {
    return this.#rows.toString('utf8', this.#attributesStart, this.#rowStart - 1)
  }

  printAttributes(): void {
    this.#copy(this.#rows, this.#attributesStart, this.#rowStart - 1)
  }

  /**
   * Prints the attributes under some keys, given as JSON, and other members. Parsing the attributes takes four times as
   * long.
   */
  printMembers(keys: ReadonlySet<string>, others = ''): void {
    const rows = this.#rows
    const end = this.#rowStart - 2
    let separator = brace
    for (let at = this.#attributesStart + 1; at < end; at += rows[at] === space ? 1 : 0) {
      const keyEnd = endOfString(rows, at)
      const memberEnd = endOfValue(rows, keyEnd + 1)
      if (keys.has(rows.toString('utf8', at, keyEnd))) {
        this.#buffer[this.#length++] = separator
        this.#copy(rows, at, memberEnd)
        separator = comma
      }
      at = memberEnd + 1
    }
    if (others !== '' || separator === brace) this.#buffer[this.#length++] = separator
    this.appendText(others)
    this.#buffer[this.#length++] = closeBrace
  }

  /** Prints a field that a row never quotes: a number or an identifier. */
  printRaw(key: Buffer): void {
    this.append(key)
    const [rows, buffer] = [this.#rows, this.#buffer]
    let [at, end] = [this.#offset + 1, this.#length]
    for (let code = rows[at]!; code !== comma && code !== close; code = rows[++at]!) buffer[end++] = code
    this.#offset = at
    this.#length = end
  }

  /** Prints a boolean or null. */
  printBoolean(key: Buffer): void {
    this.append(key)
    const code = this.#rows[this.#offset + 1]
    if (code === comma || code === close) {
      this.#offset += 1
      this.append(jsonNull)
      return
    }
    this.#offset += 2
    this.append(code === letterTrue ? jsonTrue : jsonFalse)
  }

  /** Prints a time, `"2026-01-01 12:00:00.123456+00"` in the row, in RFC 3339 with milliseconds. */
  printTime(key: Buffer): void {
    this.append(key)
    const [rows, buffer] = [this.#rows, this.#buffer]
    let [at, end] = [this.#offset + 2, this.#length]
    for (const dateEnd = at + 10; at < dateEnd; at += 1) buffer[end++] = rows[at]!
    buffer[end++] = letterT
    at += 1
    for (const timeEnd = at + 8; at < timeEnd; at += 1) buffer[end++] = rows[at]!
    buffer[end++] = dot
    if (rows[at] === dot) at += 1
    for (let digits = 0; digits < 3; digits += 1) buffer[end++] = rows[at] === plus ? zero : rows[at++]!
    buffer[end++] = letterZ
    while (rows[at] !== quote) at += 1
    this.#offset = at + 1
    this.#length = end
  }

  /** Prints a string or null. */
  printText(key: Buffer): void {
    this.append(key)
    const code = this.#rows[this.#offset + 1]
    if (code === comma || code === close) {
      this.#offset += 1
      this.append(jsonNull)
    } else if (code === quote) this.#quotedText()
    else this.#bareText()
  }

  #bareText() {
    const [rows, buffer] = [this.#rows, this.#buffer]
    let [at, end] = [this.#offset + 1, this.#length]
    buffer[end++] = quote
    for (let code = rows[at]!; code !== comma && code !== close; code = rows[++at]!) {
      if (code >= 32) buffer[end++] = code
      else end = writeControl(code, buffer, end)
    }
    buffer[end++] = quote
    this.#offset = at
    this.#length = end
  }

  #quotedText() {
    const [rows, buffer] = [this.#rows, this.#buffer]
    let [at, end] = [this.#offset + 2, this.#length]
    buffer[end++] = quote
    for (let code = rows[at]!; ; code = rows[++at]!) {
      if (isPlain[code] === 1 || code === comma || code === close) buffer[end++] = code
      else if (code === quote || code === backslash) {
        // A quoted field doubles quotes and backslashes. A single quote ends the field.
        at += 1
        if (code === quote && rows[at] !== quote) break
        buffer[end++] = backslash
        buffer[end++] = code
      } else end = writeControl(code, buffer, end)
    }
    buffer[end++] = quote
    this.#offset = at
    this.#length = end
  }

  /** Skips a number of fields. */
  skip(fields: number): void {
    for (let count = 0; count < fields; count += 1) this.#skipField()
  }

  /** Skips the next field if it equals these bytes. Returns whether it did. */
  skipIfEqual(bytes: Buffer): boolean {
    const rows = this.#rows
    const start = this.#offset + 1
    for (let index = 0; index < bytes.length; index += 1) if (rows[start + index] !== bytes[index]) return false
    const after = rows[start + bytes.length]
    if (after !== comma && after !== close) return false
    this.#offset = start + bytes.length
    return true
  }

  /** Returns the next field without printing it. */
  readValue(): string | null {
    const start = this.#offset + 1
    this.#skipField()
    if (this.#offset === start) return null
    if (this.#rows[start] !== quote) return this.#rows.toString('utf8', start, this.#offset)
    const value = this.#rows.toString('utf8', start + 1, this.#offset - 1).replaceAll('""', '"')
    return value.includes('\\') ? value.replaceAll('\\\\', '\\') : value
  }

  #skipField() {
    const rows = this.#rows
    let at = this.#offset + 1
    let code = rows[at]!
    if (code !== quote) while (code !== comma && code !== close) code = rows[++at]!
    else
      for (code = rows[++at]!; ; code = rows[++at]!) {
        if (code !== quote && code !== backslash) continue
        at += 1
        if (code === quote && rows[at] !== quote) break
      }
    this.#offset = at
  }
}

/** The offset after the JSON string at an offset. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1
  for (let code = bytes[at]!; code !== quote; code = bytes[++at]!) if (code === backslash) at += 1
  return at + 1
}

/** The offset of the comma or brace after the value of a member. */
function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0
  for (let at = start; ; at += 1) {
    const code = bytes[at]!
    if (code === quote) at = endOfString(bytes, at) - 1
    else if (code === brace || code === openBracket) depth += 1
    else if (depth === 0 && (code === comma || code === closeBrace)) return at
    else if (code === closeBrace || code === closeBracket) depth -= 1
  }
}

/** Writes the JSON escape of a control character. Returns the offset after it. */
function writeControl(code: number, buffer: Uint8Array, start: number): number {
  const escaped = controlEscapes[code]!
  let end = start
  for (let index = 0; index < escaped.length; index += 1) buffer[end++] = escaped[index]!
  return end
}
