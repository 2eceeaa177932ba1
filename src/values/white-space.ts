/** Removes Unicode White_Space at both ends. `String.prototype.trim` keeps U+0085 and removes U+FEFF. */
export function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isWhiteSpace(text.charCodeAt(start))) start++
  while (end > start && isWhiteSpace(text.charCodeAt(end - 1))) end--
  return end - start === text.length ? text : text.slice(start, end)
}

function isWhiteSpace(code: number): boolean {
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  if (code < 0x1680) return code === 0x85 || code === 0xa0
  if (code < 0x2000) return code === 0x1680
  if (code <= 0x200a) return true
  return code === 0x2028 || code === 0x2029 || code === 0x202f || code === 0x205f || code === 0x3000
}
