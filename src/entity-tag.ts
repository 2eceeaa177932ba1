/** The precondition of a request: `*`, or the accepted versions. Null if the request has none. */
export type IfMatch = '*' | readonly number[] | null

/** The entity tag of a version. */
export const entityTag = (version: number): string => `"${version}"`

/** Whether a version meets the precondition. Undefined is the version of an entity that does not exist. */
export const meetsIfMatch = (ifMatch: IfMatch, version: number | undefined): boolean =>
  ifMatch === null || (version !== undefined && (ifMatch === '*' || ifMatch.includes(version)))

/** The message for a malformed precondition. */
export const ifMatchMessage = 'must be * or a list of entity tags in double quotes, such as "3"'

// A tag may contain commas (RFC 9110, 8.8.3), so the list is not split at commas.
const tag = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const tags = new RegExp(`^${tag}(?:[\\t ]*,[\\t ]*${tag})*$`)
const eachTag = new RegExp(tag, 'g')
const ownTag = /^"(0|[1-9]\d{0,9})"$/

/** Parses `If-Match`. Returns undefined if it is not a list of tags. A weak or foreign tag matches nothing. */
export function readIfMatch(text: string): Exclude<IfMatch, null> | undefined {
  if (text === '*') return '*'
  if (!tags.test(text)) return undefined
  return (text.match(eachTag) ?? []).flatMap(found => {
    const version = ownTag.exec(found)
    return version ? [Number(version[1])] : []
  })
}
