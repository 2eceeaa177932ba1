const numeral = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * A text of a query string as its declared type has it. What would be a number in a JSON body is that number, `1.50` and
 * `1e3` too; `true` and `false` are booleans. Any other text stays a text, for validation to refuse.
 */
export function coerceText(text: string, type: 'boolean' | 'number'): string | boolean | number {
  if (type === 'boolean') return text === 'true' || (text === 'false' ? false : text)
  return numeral.test(text) && readsBackEqual(text) ? Number(text) : text
}

/** Whether a JSON number says the same after a double has held it. Integers beyond 2^53-1 do not: their neighbours merge. */
export function readsBackEqual(source: string): boolean {
  const number = Number(source)
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER) return false
  const [sent, kept] = [decimalOf(source), decimalOf(String(number))]
  return sent.digits === kept.digits && sent.exponent === kept.exponent
}

/** A number as its digits without zeros at either end, times ten to the exponent. */
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
