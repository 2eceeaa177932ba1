/** `*`, or the versions that may stand. Null where a request names none. */
export type IfMatch = '*' | readonly number[] | null

/** The entity tag of a version. */
export const entityTag = (version: number): string => `"${version}"`

/** What is said of a precondition that cannot be read. */
export const ifMatchMessage = 'must be * or a list of entity tags in double quotes, such as "3"'

// A tag may hold commas (RFC 9110, 8.8.3), so a list is not split at them.
const tag = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const tags = new RegExp(`^${tag}(?:[\\t ]*,[\\t ]*${tag})*$`)
const eachTag = new RegExp(tag, 'g')
const ownTag = /^"(0|[1-9]\d{0,9})"$/

/** Reads `If-Match`, undefined where it is no list of tags. A weak or foreign tag matches nothing. */
export function readIfMatch(text: string): Exclude<IfMatch, null> | undefined {
  if (text === '*') return '*'
  if (!tags.test(text)) return undefined
  return (text.match(eachTag) ?? []).flatMap(found => {
    const version = ownTag.exec(found)
    return version ? [Number(version[1])] : []
  })
}
