import type { Profile } from '../entities/entity-row.ts'
import { emailKey } from '../entities/match-keys.ts'
import { mobileKey } from '../values/phone-numbers.ts'

/** The email and phone that lead to the survivor by a merge, as keys. */
export type MergedAddresses = { email_key: string | null; mobile_key: string | null }

export type Contact = Partial<Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'>>

/**
 * The addresses of the two people of a merge that the survivor does not have itself after it. They go on to lead to the survivor, who has
 * one of the two or none, so there is one of each kind at most. `former` are those of the survivor before the merge, and `country` is that
 * of numbers without a prefix.
 */
export function mergedAddresses(
  survivor: Contact,
  { former, merged }: Record<'former' | 'merged', Contact>,
  country: string | null,
): MergedAddresses {
  const mobileOf = ({ mobile_prefix, mobile_number }: Contact) => mobileKey(mobile_prefix, mobile_number, country)
  const leading = (keyOf: (contact: Contact) => string | null) =>
    [former, merged].map(keyOf).find(key => key !== null && key !== keyOf(survivor)) ?? null
  return { email_key: leading(({ email }) => emailKey(email)), mobile_key: leading(mobileOf) }
}

/** A further identifier of a person, as responses show it. An email and a phone are keys: in lower case, and in E.164. */
export type Alias = { kind: 'external_id' | 'email' | 'mobile'; value: string }

export type LeadingIdentifiers = { aliases: readonly string[]; emails: readonly string[]; mobiles: readonly string[] }

/** The identifiers that a merge leads to another person, each once. */
export const aliasesToJson = ({ aliases, emails, mobiles }: LeadingIdentifiers): Alias[] => [
  ...aliases.map((value): Alias => ({ kind: 'external_id', value })),
  ...[...new Set(emails)].map((value): Alias => ({ kind: 'email', value })),
  ...[...new Set(mobiles)].map((value): Alias => ({ kind: 'mobile', value })),
]

/** The kinds of aliases, as the schema of a response has them. */
export const aliasKinds = ['external_id', 'email', 'mobile'] as const satisfies Alias['kind'][]
