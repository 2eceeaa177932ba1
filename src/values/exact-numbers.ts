type Context = { source: string }
type Json = {
  parse(text: string, reviver: (key: string, value: unknown, context: Context) => unknown): unknown
  rawJSON(text: string): object
}

// The types of TypeScript lack the source of a parsed number, which Node.js has.
const { parse, rawJSON } = JSON as unknown as Json

/**
 * Parses JSON. A number that loses digits as a JavaScript number becomes an object that JSON.stringify prints with all of them.
 */
export const parseWithAllDigits = (text: string): unknown =>
  parse(text, (_, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? rawJSON(source) : value,
  )
