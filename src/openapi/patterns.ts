// These patterns describe kith's own formats, which readers of the document do not know. kith trims the strings of a
// body first, so the patterns allow white space at both ends.
const space = '\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
const trimmed = (pattern: string) => `^[${space}]*(?:${pattern})[${space}]*$`

const control = '\\u0000-\\u001f\\u007f-\\u009f'
const letters = 'A-Za-z'
const alphanumeric = '[A-Za-z\\d]'

/** RFC 5646, 2.1, with its grandfathered tags. A pattern cannot express that a variant occurs only once. */
const language = [
  `(?:[${letters}]{2,3}(?:[-_][${letters}]{3}){0,3}|[${letters}]{4,8})` +
    `(?:[-_][${letters}]{4})?(?:[-_](?:[${letters}]{2}|\\d{3}))?(?:[-_](?:${alphanumeric}{5,8}|\\d${alphanumeric}{3}))*` +
    `(?:[-_][A-WYZa-wyz\\d](?:[-_]${alphanumeric}{2,8})+)*(?:[-_][xX](?:[-_]${alphanumeric}{1,8})+)?`,
  `[xX](?:[-_]${alphanumeric}{1,8})+`,
  '[iI][-_](?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)',
  '[eE][nN][-_][gG][bB][-_][oO][eE][dD]',
  '[sS][gG][nN][-_](?:[bB][eE][-_](?:[fF][rR]|[nN][lL])|[cC][hH][-_][dD][eE])',
].join('|')

/** A pattern cannot express leap years, nor that the date is not in the future. */
const date_of_birth =
  '(?:18[5-9]\\d|[2-9]\\d{3}|19\\d\\d)-' +
  '(?:(?:0[13-9]|1[0-2])-(?:0[1-9]|[12]\\d|30)|(?:0[13578]|1[02])-31|02-(?:0[1-9]|[12]\\d))'

const two_digits = '[0-5]\\d'
/** A pattern cannot express leap years, nor that the time is not in the future. */
const collection_time =
  '(?:1989|199\\d|[2-9]\\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])[Tt]' +
  `(?:[01]\\d|2[0-3]):${two_digits}:${two_digits}(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):${two_digits})`

/** The patterns of kith's own formats, by format name. */
export const patterns: Record<string, string> = {
  'external-id': trimmed(`(?!\\.{1,2}[${space}]*$)[^${space}${control}](?:[^${control}]*[^${space}${control}])?`),
  'collection-time': trimmed(collection_time),
  // This pattern is rough, because the exact one of IPv6 has nine alternatives.
  'ip-address': trimmed('(?:\\d{1,3}\\.){3}\\d{1,3}|[\\da-fA-F:.]*:[\\da-fA-F:.]*'),
  'entity-id': trimmed('[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{24}'),
  'object-id': trimmed('[0-9a-fA-F]{24}'),
  // The pattern does not list the existing zones.
  'time-zone': trimmed('UTC|[A-Za-z][\\w+\\-]*(?:/[\\w+\\-]+)+'),
  language: trimmed(language),
  'date-of-birth': trimmed(date_of_birth),
}

const tag = '(?:W/)?"[!#-~\\u0080-\\u00ff]*"'

/** `*` or a list of entity tags (RFC 9110, 13.1.1). */
export const ifMatchPattern = `^(?:\\*|${tag}(?:[\\t ]*,[\\t ]*${tag})*)$`

/** An external identifier in a path, which is not trimmed. */
export const pathExternalId = `^(?!\\.{1,2}$)[^${control}]{1,255}$`
