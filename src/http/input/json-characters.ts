/** The codes of the characters that structure JSON. */
export const [space, quote, comma, dot, colon, backslash, lowerU] = [0x20, 0x22, 0x2c, 0x2e, 0x3a, 0x5c, 0x75] as const
export const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d] as const

/** The offset of the first character that is not JSON white space, at most `until`. */
export function firstVisible(text: string, from: number, until = Number.POSITIVE_INFINITY): number {
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at)
    if ((code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) || at >= until) return at
  }
}
