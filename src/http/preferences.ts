import { fail } from '../errors.ts'

/** What a request asks for in its `If-Match` and `Prefer` headers. */
export type Preferences = {
  /** `*`, or the versions that may stand; null where the request names none. */
  if_match: '*' | readonly number[] | null
  /** `return=representation`: a PUT or PATCH answers the entity instead of `true`. */
  representation: boolean
  /** `references=strict`: relationship targets that do not exist are refused instead of created. */
  references: 'create' | 'strict'
}

const entity_tag = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/
const version = /^(0|[1-9]\d{0,9})$/

/** Reads `If-Match`. A weak or foreign tag matches nothing; what is no list of tags is refused with 400. */
export function parseIfMatch(header: string | undefined): Preferences['if_match'] {
  if (header === undefined) return null
  if (header.trim() === '*') return '*'
  return header.split(',').flatMap(element => {
    const tag = entity_tag.exec(element.trim())
    if (!tag) fail('invalid_parameter', 'If-Match must be * or a list of entity tags in double quotes, such as "3".')
    return tag[1] === undefined && version.test(tag[2]!) ? [Number(tag[2])] : []
  })
}

/** Reads `Prefer` (RFC 7240). Preferences that are not known are ignored, as the RFC has it; the first of two counts. */
export function parsePrefer(header: string | undefined): Pick<Preferences, 'representation' | 'references'> {
  const preferences = new Map<string, string>()
  for (const element of header?.split(',') ?? []) {
    const [name = '', value = ''] = element.split(';')[0]!.split('=', 2)
    const key = name.trim().toLowerCase()
    if (!preferences.has(key)) preferences.set(key, value.trim().replace(/^"(.*)"$/, '$1'))
  }
  return {
    representation: preferences.get('return') === 'representation',
    references: preferences.get('references') === 'strict' ? 'strict' : 'create',
  }
}
