import type { Profile } from '../entities/entity-row.ts'
import { type MatchKeys, matchKeys } from '../entities/match-keys.ts'
import type { PersonAlias } from './merge-schema.ts'

export type Contact = Partial<Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'>>

/**
 * The addresses of `others` that the survivor does not have after a merge. They lead to the survivor from now on. There
 * is at most one email and one phone, because `others` are the two people of the merge and the survivor has one of
 * their addresses or none. `country` applies to numbers without a prefix.
 */
export function mergedAddresses(
  survivor: Contact,
  others: readonly Contact[],
  country: string | null,
): Pick<MatchKeys, 'email_key' | 'mobile_key'> {
  const own = matchKeys(survivor, country)
  const keysOfOthers = others.map(contact => matchKeys(contact, country))
  const leading = (name: 'email_key' | 'mobile_key') =>
    keysOfOthers.map(keys => keys[name]).find(key => key !== null && key !== own[name]) ?? null
  return { email_key: leading('email_key'), mobile_key: leading('mobile_key') }
}

export type LeadingIdentifiers = { aliases: readonly string[]; emails: readonly string[]; mobiles: readonly string[] }

/** The identifiers that a merge leads to another person, without repetitions. */
export const aliasesToJson = ({ aliases, emails, mobiles }: LeadingIdentifiers): PersonAlias[] => [
  ...aliases.map((value): PersonAlias => ({ kind: 'external_id', value })),
  ...[...new Set(emails)].map((value): PersonAlias => ({ kind: 'email', value })),
  ...[...new Set(mobiles)].map((value): PersonAlias => ({ kind: 'mobile', value })),
]
