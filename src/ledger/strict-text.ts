/** A text of the ledger that is not in its format. The message says what is wrong, as a sentence. */
export class FormatError extends Error {}

/** Decodes standard base64 in its canonical form: padded, and without unused bits. Undefined for any other text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** Parses a decimal number without leading zeros. Undefined for any other text, and for numbers above 2^53 - 1. */
export function parseDecimal(text: string): number | undefined {
  const number = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}
