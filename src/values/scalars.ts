const numeral = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * Converts a text of a query string to its declared type. A text that is a JSON number becomes that number, including
 * `1.50` and `1e3`, and `true` and `false` become booleans. Any other text stays a text, which validation refuses.
 */
export function coerceText(text: string, type: 'boolean' | 'number'): string | boolean | number {
  if (type === 'boolean') return text === 'true' || (text === 'false' ? false : text)
  return numeral.test(text) && readsBackEqual(text) ? Number(text) : text
}

/** Whether a JSON number keeps its value as a double. Integers beyond 2^53-1 do not, because neighbours share a double. */
export function readsBackEqual(source: string): boolean {
  const number = Number(source)
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER) return false
  const [sent, stored] = [decimalOf(source), decimalOf(String(number))]
  return sent.digits === stored.digits && sent.exponent === stored.exponent
}

/** A number as its digits, without leading and trailing zeros, and a power of ten. */
function decimalOf(source: string): { digits: string; exponent: number } {
  const [mantissa = '', power = '0'] = source.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let [start, end] = [0, digits.length]
  while (start < end && digits.charCodeAt(start) === 0x30) start++
  while (end > start && digits.charCodeAt(end - 1) === 0x30) end--
  if (start === end) return { digits: '', exponent: 0 }
  return { digits: digits.slice(start, end), exponent: Number(power) - fraction.length + digits.length - end }
}
