import { type IfMatch, ifMatchMessage, readIfMatch } from '../../entity-tag.ts'
import { fail } from '../../errors.ts'

/** What a request asks for in its `If-Match` and `Prefer` headers. */
export type Preferences = {
  if_match: IfMatch
  /** `return=representation`: a PUT or PATCH answers the entity instead of `true`. */
  representation: boolean
  /** `references=strict`: relationship targets that do not exist are refused instead of created. */
  references: 'create' | 'strict'
  /** `handling=strict`: what would be answered with a warning is refused. */
  handling: 'lenient' | 'strict'
}

/** What most requests say: nothing. */
const none: Preferences = Object.freeze({
  if_match: null,
  representation: false,
  references: 'create',
  handling: 'lenient',
})

/** Reads both headers; throws a Fault of 400 where If-Match is no list of tags. */
export function readPreferences(if_match: string | undefined, prefer: string | undefined): Preferences {
  if (if_match === undefined && prefer === undefined) return none
  return { if_match: parseIfMatch(if_match), ...parsePrefer(prefer) }
}

/** Reads the `If-Match` header; throws a Fault of 400 where it is no list of tags. */
function parseIfMatch(header: string | undefined): IfMatch {
  if (header === undefined) return null
  return readIfMatch(header.trim()) ?? fail('invalid_parameter', `If-Match ${ifMatchMessage}.`)
}

/** Reads `Prefer` (RFC 7240). Preferences that are not known are ignored, as the RFC has it; the first of two counts. */
function parsePrefer(header: string | undefined): Omit<Preferences, 'if_match'> {
  const preferences = new Map<string, string>()
  for (const element of header?.split(',') ?? []) {
    const [name = '', value = ''] = element.split(';')[0]!.split('=', 2)
    const key = name.trim().toLowerCase()
    if (!preferences.has(key)) preferences.set(key, value.trim().replace(/^"(.*)"$/, '$1'))
  }
  return {
    representation: preferences.get('return') === 'representation',
    references: preferences.get('references') === 'strict' ? 'strict' : 'create',
    handling: preferences.get('handling') === 'strict' ? 'strict' : 'lenient',
  }
}
