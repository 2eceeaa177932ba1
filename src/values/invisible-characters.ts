/**
 * Characters that show nothing or change the order of others. With them, a reader could mistake one name for another.
 */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Whether a text contains such a character. */
export const hasInvisible = (text: string): boolean => invisible.test(text)

/** Names the first invisible character of a text, such as `U+200B ZERO WIDTH SPACE`. Undefined if it has none. */
export const findInvisible = (text: string): string | undefined => nameFirst(invisible, text)

/** An invisible character, or white space that looks like a space but is a different character. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{White_Space}/u

/** Names the first character of a text that a person cannot recognize by its look. */
export const findUnseen = (text: string): string | undefined => nameFirst(unseen, text)

function nameFirst(characters: RegExp, text: string): string | undefined {
  const found = characters.exec(text)?.[0]
  return found === undefined ? undefined : nameCharacter(found.codePointAt(0)!)
}

/** The message for a value that breaks a rule. It names the value's invisible character, which may be the reason. */
export function withUnseen(message: string, value: unknown): string {
  const found = typeof value === 'string' ? findUnseen(value) : undefined
  if (found === undefined) return message
  return message.endsWith('.') ? `${message} It contains ${found}.` : `${message}. It contains ${found}`
}

/** The names of Unicode characters. A range of characters with one name has no line here. */
const names: Readonly<Record<number, string>> = {
  0: 'NULL',
  9: 'CHARACTER TABULATION',
  10: 'LINE FEED',
  13: 'CARRIAGE RETURN',
  27: 'ESCAPE',
  127: 'DELETE',
  133: 'NEXT LINE',
  160: 'NO-BREAK SPACE',
  173: 'SOFT HYPHEN',
  847: 'COMBINING GRAPHEME JOINER',
  1564: 'ARABIC LETTER MARK',
  4447: 'HANGUL CHOSEONG FILLER',
  4448: 'HANGUL JUNGSEONG FILLER',
  6068: 'KHMER VOWEL INHERENT AQ',
  6069: 'KHMER VOWEL INHERENT AA',
  6155: 'MONGOLIAN FREE VARIATION SELECTOR ONE',
  6156: 'MONGOLIAN FREE VARIATION SELECTOR TWO',
  6157: 'MONGOLIAN FREE VARIATION SELECTOR THREE',
  6158: 'MONGOLIAN VOWEL SEPARATOR',
  6159: 'MONGOLIAN FREE VARIATION SELECTOR FOUR',
  8203: 'ZERO WIDTH SPACE',
  8204: 'ZERO WIDTH NON-JOINER',
  8205: 'ZERO WIDTH JOINER',
  8206: 'LEFT-TO-RIGHT MARK',
  8207: 'RIGHT-TO-LEFT MARK',
  8232: 'LINE SEPARATOR',
  8233: 'PARAGRAPH SEPARATOR',
  8234: 'LEFT-TO-RIGHT EMBEDDING',
  8235: 'RIGHT-TO-LEFT EMBEDDING',
  8236: 'POP DIRECTIONAL FORMATTING',
  8237: 'LEFT-TO-RIGHT OVERRIDE',
  8238: 'RIGHT-TO-LEFT OVERRIDE',
  8288: 'WORD JOINER',
  8289: 'FUNCTION APPLICATION',
  8290: 'INVISIBLE TIMES',
  8291: 'INVISIBLE SEPARATOR',
  8292: 'INVISIBLE PLUS',
  8294: 'LEFT-TO-RIGHT ISOLATE',
  8295: 'RIGHT-TO-LEFT ISOLATE',
  8296: 'FIRST STRONG ISOLATE',
  8297: 'POP DIRECTIONAL ISOLATE',
  8298: 'INHIBIT SYMMETRIC SWAPPING',
  8299: 'ACTIVATE SYMMETRIC SWAPPING',
  8300: 'INHIBIT ARABIC FORM SHAPING',
  8301: 'ACTIVATE ARABIC FORM SHAPING',
  8302: 'NATIONAL DIGIT SHAPES',
  8303: 'NOMINAL DIGIT SHAPES',
  12644: 'HANGUL FILLER',
  65279: 'ZERO WIDTH NO-BREAK SPACE',
  65440: 'HALFWIDTH HANGUL FILLER',
  65529: 'INTERLINEAR ANNOTATION ANCHOR',
  65530: 'INTERLINEAR ANNOTATION SEPARATOR',
  65531: 'INTERLINEAR ANNOTATION TERMINATOR',
}

/** Names a character by its code point, and by its name if it is usual in texts, or else by its kind. */
function nameCharacter(code: number): string {
  const point = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
  const name = names[code] ?? selectorName(code)
  if (name !== undefined) return `${point} ${name}`
  const isSpace = /\p{White_Space}/u.test(String.fromCodePoint(code))
  return `${point}, ${code < 0xa0 ? 'a control character' : isSpace ? 'a white space character' : 'an invisible character'}`
}

/** Names the variation selectors, which follow emoji, and the tags, which follow flags. */
function selectorName(code: number): string | undefined {
  if (code >= 0xfe00 && code <= 0xfe0f) return `VARIATION SELECTOR-${code - 0xfe00 + 1}`
  if (code >= 0xe0100 && code <= 0xe01ef) return `VARIATION SELECTOR-${code - 0xe0100 + 17}`
  return code >= 0xe0020 && code <= 0xe007f ? 'TAG CHARACTER' : undefined
}
