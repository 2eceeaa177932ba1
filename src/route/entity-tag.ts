import { hash } from 'node:crypto'
import { createRefusal, type Refusal } from '../values/errors.ts'

/**
 * The precondition of a request: `*`, or the accepted versions, and tags that kith did not make. Null without a
 * precondition.
 */
export type IfMatch = '*' | readonly (number | string)[] | null

/** The entity tag of a version. */
export const entityTag = (version: number): string => `"${version}"`

const digestCharacters = 22

/**
 * The entity tag of a body: the tag of its version, if any, and a digest of the body. Changes of other entities and of
 * definitions, and the passing of time, change a read without changing the version. The digest has 132 bits of SHA-256.
 */
export function bodyTag(versionTag: string | undefined, body: string): string {
  const digest = hash('sha256', body, 'base64url').slice(0, digestCharacters)
  return versionTag === undefined ? `"${digest}"` : `${versionTag.slice(0, -1)}-${digest}"`
}

/** Whether an If-None-Match header contains the tag. A weak tag of a proxy matches too (RFC 9110, 13.1.2). */
export const meetsIfNoneMatch = (header: string, tag: string): boolean => header.trim() === '*' || header.includes(tag)

/** Whether a version meets the precondition. The version of a missing entity is undefined. */
export const meetsIfMatch = (ifMatch: IfMatch, version: number | undefined): boolean =>
  ifMatch === null || (version !== undefined && (ifMatch === '*' || ifMatch.includes(version)))

/** The message for a malformed precondition. */
export const ifMatchMessage = 'must be * or a list of entity tags in double quotes, such as "3"'

// A tag may contain commas (RFC 9110, 8.8.3), so the list is not split at commas.
const tag = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const tags = new RegExp(`^${tag}(?:[\\t ]*,[\\t ]*${tag})*$`)
const eachTag = new RegExp(tag, 'g')
const ownTag = new RegExp(`^"(0|[1-9]\\d{0,9})(?:-[\\w-]{${digestCharacters}})?"$`)

/**
 * Parses `If-Match`. A tag of kith becomes its version. A weak or foreign tag stays a text, which matches no version.
 * Returns undefined if the header is not a list of tags.
 */
export function readIfMatch(text: string): Exclude<IfMatch, null> | undefined {
  if (text === '*') return '*'
  if (!tags.test(text)) return undefined
  return (text.match(eachTag) ?? []).map(found => {
    const version = ownTag.exec(found)
    return version ? Number(version[1]) : found
  })
}

/** The refusal of a request whose precondition fails. Its message explains a foreign tag, if there is one. */
export function buildOtherVersionRefusal(ifMatch: IfMatch, otherwise: string): Refusal {
  const foreign = Array.isArray(ifMatch) ? ifMatch.find(tag => typeof tag === 'string') : undefined
  return createRefusal('invalid_parameter', foreign === undefined ? otherwise : foreignMessage(foreign), {
    status: 412,
  })
}

/** A proxy that compresses responses makes their tags weak, or adds a suffix to them. */
function foreignMessage(tag: string): string {
  const version = /^(?:W\/)?"(0|[1-9]\d{0,9})(?!\d)[^"]*"$/.exec(tag)?.[1]
  const found = `If-Match has ${tag}, and no version has ${tag.startsWith('W/') ? 'a weak tag' : 'this tag'}.`
  if (version === undefined) return `${found} Read the entity and retry with its ETag.`
  return `${found} A proxy that compresses responses changes tags. Send ${entityTag(Number(version))}.`
}
