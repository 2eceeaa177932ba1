// V8 can confuse an escaped key with another key, after it has parsed a key that ends in a backslash
// (nodejs/node#63785).
const hasEscapedKey = /\\[\s\S][^"\\]*"[ \n\r\t]*:/

/**
 * Like JSON.parse, but with exact keys. Escaped keys are replaced by plain ones before the text is parsed, and restored
 * afterwards. Throws a SyntaxError.
 */
export function parseExactly(text: string): unknown {
  if (!text.includes('\\') || !hasEscapedKey.test(text)) return JSON.parse(text)
  const names: string[] = []
  return restoreKeys(JSON.parse(writePlainKeys(text, names)), names)
}

/** The text with each key replaced by its index in `names`. Equal keys have the same index. */
function writePlainKeys(text: string, names: string[]): string {
  const numbers = new Map<string, number>()
  const parts: string[] = []
  let copiedUntil = 0
  for (let start = text.indexOf('"'); start !== -1; ) {
    const end = endOfString(text, start)
    if (isKey(text, end)) {
      const name = JSON.parse(text.slice(start, end)) as string
      const number = numbers.get(name) ?? names.push(name) - 1
      numbers.set(name, number)
      parts.push(text.slice(copiedUntil, start), `"k${number}"`)
      copiedUntil = end
    }
    start = text.indexOf('"', end)
  }
  return parts.join('') + text.slice(copiedUntil)
}

/** The offset after the closing quote of the string at an offset, or the end of the text without one. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
  return text.length
}

function isKey(text: string, end: number): boolean {
  let at = end
  while (at < text.length && ' \n\r\t'.includes(text[at]!)) at++
  return text[at] === ':'
}

function restoreKeys(value: unknown, names: string[]): unknown {
  if (Array.isArray(value)) return value.map(element => restoreKeys(element, names))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
  return Object.fromEntries(members.map(([key, member]) => [names[Number(key.slice(1))]!, restoreKeys(member, names)]))
}

type Context = { source: string }
type Json = {
  parse(text: string, reviver: (key: string, value: unknown, context: Context) => unknown): unknown
  rawJSON(text: string): object
}

// TypeScript's types lack the source of a parsed number, which Node.js provides.
const { parse, rawJSON } = JSON as unknown as Json

/**
 * Parses JSON. A number that would lose digits as a JavaScript number becomes an object that JSON.stringify prints with
 * all digits.
 */
export const parseWithAllDigits = (text: string): unknown =>
  parse(text, (_, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawJSON(source) : value,
  )

/** The value of a JSON text. Undefined for an invalid one. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Prints a position in a list as a cursor. */
export const printPlace = (place: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(place)).toString('base64url')

/** The members of a position from {@link printPlace}. Empty for any other text. */
export function parsePlace(cursor: string): unknown[] {
  const place = parseJson(Buffer.from(cursor, 'base64url').toString())
  return Array.isArray(place) ? place : []
}
