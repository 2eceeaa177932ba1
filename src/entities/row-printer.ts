const [quote, plus, close, comma, dot, zero, letter_t, letter_z, backslash] = [34, 43, 41, 44, 46, 48, 84, 90, 92]

/** The codes that a field of a row and a JSON string both hold as they are. */
const plain = Uint8Array.from({ length: 128 }, (_, code) =>
  code >= 32 && ![quote, close, comma, backslash].includes(code) ? 1 : 0,
)

const [nothing, yes, no] = ['null', 'true', 'false'].map(word => Buffer.from(word)) as [Buffer, Buffer, Buffer]

/** From here on a text is copied by a call: of 10 kB in a third of the time, of 300 bytes beyond ASCII in more. */
const long = 1_000

// A page of 50 people takes 28 kB.
const room_bytes = 64 * 1024
const most_kept_bytes = 2 * 1024 * 1024

/**
 * Prints entities as JSON out of the text of their rows (`row_text`), field by field and byte by byte, into room that is used
 * again: 1 µs a person, where slices of the text put together took 2.6 µs and left garbage. A method that is given a key
 * prints it, and behind it what stands next in the row.
 */
export class RowPrinter {
  #text = ''
  /** Before the next field: at `(` or at a comma. Between entities, where the next one begins. */
  #at = 0
  /** Where the attributes and the row of this entity begin. */
  #attributes_at = 0
  #row_at = 0
  #room = Buffer.allocUnsafeSlow(room_bytes)
  #end = 0

  /** Begins anew, with these rows and nothing printed: what {@link bytes} showed is written over. */
  start(text: string): this {
    this.#text = text
    this.#at = 0
    this.#end = 0
    if (this.#room.length > most_kept_bytes) this.#room = Buffer.allocUnsafeSlow(room_bytes)
    return this
  }

  /** Whether another entity follows. */
  get more(): boolean {
    return this.#at < this.#text.length
  }

  /** The internal identifier of the last entity that was printed. */
  get id(): string {
    return this.#text.slice(this.#row_at + 1, this.#row_at + 37)
  }

  /** All that was printed. */
  get json(): string {
    return this.#room.toString('utf8', 0, this.#end)
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
    this.#row_at = this.#text.indexOf('\n', from) + 1
    this.#at = this.#row_at
  }

  /** The bytes alone. */
  put(bytes: Uint8Array): void {
    const room = this.#room
    let end = this.#end
    // A call costs what 40 bytes do.
    if (bytes.length > 40 && end + bytes.length <= room.length) {
      room.set(bytes, end)
      end += bytes.length
    } else for (let index = 0; index < bytes.length; index += 1) room[end++] = bytes[index]!
    this.#end = end
  }

  /** A text alone, or part of one. */
  copy(text: string, from = 0, to = text.length): void {
    const room = this.#room
    let end = this.#end
    if (to - from >= long) {
      const part = text.slice(from, to)
      const bytes = Buffer.byteLength(part)
      if (end + bytes <= room.length) room.write(part, end)
      this.#end = end + bytes
      return
    }
    for (let at = from; at < to; at += 1) {
      const code = text.charCodeAt(at)
      if (code < 128) room[end++] = code
      else {
        const point = text.codePointAt(at)!
        end = encode(point, room, end)
        if (point > 0xffff) at += 1
      }
    }
    this.#end = end
  }

  /** The attributes of the entity, which are JSON. */
  get attributes(): string {
    return this.#text.slice(this.#attributes_at, this.#row_at - 1)
  }

  copyAttributes(): void {
    this.copy(this.#text, this.#attributes_at, this.#row_at - 1)
  }

  /** A field that needs no quotes in a row: a number, an identifier. */
  bare(key: Uint8Array): void {
    this.put(key)
    const [text, room] = [this.#text, this.#room]
    let [at, end] = [this.#at + 1, this.#end]
    for (let code = text.charCodeAt(at); code !== comma && code !== close; code = text.charCodeAt(++at))
      room[end++] = code
    this.#at = at
    this.#end = end
  }

  /** A boolean, or null. */
  flag(key: Uint8Array): void {
    this.put(key)
    const value = this.value()
    this.put(value === null ? nothing : value === 't' ? yes : no)
  }

  /** A time, `"2026-01-01 12:00:00.123456+00"` in the row, in RFC 3339 with milliseconds. */
  moment(key: Uint8Array): void {
    this.put(key)
    const [text, room] = [this.#text, this.#room]
    let [at, end] = [this.#at + 2, this.#end]
    for (const date_end = at + 10; at < date_end; at += 1) room[end++] = text.charCodeAt(at)
    room[end++] = letter_t
    at += 1
    for (const time_end = at + 8; at < time_end; at += 1) room[end++] = text.charCodeAt(at)
    room[end++] = dot
    if (text.charCodeAt(at) === dot) at += 1
    for (let digits = 0; digits < 3; digits += 1)
      room[end++] = text.charCodeAt(at) === plus ? zero : text.charCodeAt(at++)
    room[end++] = letter_z
    this.#at = text.indexOf('"', at) + 1
    this.#end = end
  }

  /** A text, or null. */
  text(key: Uint8Array): void {
    this.put(key)
    const [text, room] = [this.#text, this.#room]
    let [at, end] = [this.#at + 1, this.#end]
    let code = text.charCodeAt(at)
    const quoted = code === quote
    if (code === comma || code === close) this.put(nothing)
    else {
      if (quoted) code = text.charCodeAt(++at)
      room[end++] = quote
      for (; ; code = text.charCodeAt(++at)) {
        if (plain[code] === 1) room[end++] = code
        else if (code === comma || code === close) {
          if (!quoted) break
          room[end++] = code
        } else if (code === quote || code === backslash) {
          // In a row both are doubled within quotes; a quote that is not ends them.
          at += 1
          if (code === quote && text.charCodeAt(at) !== quote) break
          room[end++] = backslash
          room[end++] = code
        } else {
          const point = text.codePointAt(at)!
          end = code < 32 ? escapeControl(point, room, end) : encode(point, room, end)
          if (point > 0xffff) at += 1
        }
      }
      room[end++] = quote
      this.#end = end
    }
    this.#at = at
  }

  /** Leaves so many fields out. */
  pass(fields: number): void {
    for (let count = 0; count < fields; count += 1) this.value()
  }

  /** The next field itself, which is not printed. */
  value(): string | null {
    const text = this.#text
    const start = this.#at + 1
    let at = start
    let code = text.charCodeAt(at)
    if (code !== quote) {
      while (code !== comma && code !== close) code = text.charCodeAt(++at)
      this.#at = at
      return at === start ? null : text.slice(start, at)
    }
    for (code = text.charCodeAt(++at); ; code = text.charCodeAt(++at)) {
      if (code !== quote && code !== backslash) continue
      at += 1
      if (code === quote && text.charCodeAt(at) !== quote) break
    }
    this.#at = at
    return text.slice(start + 1, at - 1).replaceAll(/(["\\])\1/g, '$1')
  }
}

/** Writes a character beyond ASCII as UTF-8. Answers where it ends. */
function encode(point: number, room: Uint8Array, start: number): number {
  let end = start
  if (point < 0x800) room[end++] = 0xc0 | (point >> 6)
  else {
    if (point < 0x10000) room[end++] = 0xe0 | (point >> 12)
    else {
      room[end++] = 0xf0 | (point >> 18)
      room[end++] = 0x80 | ((point >> 12) & 0x3f)
    }
    room[end++] = 0x80 | ((point >> 6) & 0x3f)
  }
  room[end++] = 0x80 | (point & 0x3f)
  return end
}

/** Writes a control character as JSON writes it. Answers where it ends. */
function escapeControl(point: number, room: Uint8Array, start: number): number {
  let end = start
  for (const letter of JSON.stringify(String.fromCharCode(point)).slice(1, -1)) room[end++] = letter.charCodeAt(0)
  return end
}
