import type { Profile } from '../entities/entity-row.ts'
import { emailKey } from '../entities/match-keys.ts'
import { mobileKey } from '../values/phone-numbers.ts'

/** The email and phone of a merged person that lead to the survivor, as keys. */
export type MergedAddresses = { email_key: string | null; mobile_key: string | null }

type Contact = Partial<Pick<Profile, 'email' | 'mobile_prefix' | 'mobile_number'>>

/** The addresses of a merged person that the survivor does not have itself after the merge. `country` is that of numbers without a prefix. They go on to lead to the survivor. */
export function mergedAddresses(survivor: Contact, merged: Contact, country: string | null): MergedAddresses {
  const mobileOf = ({ mobile_prefix, mobile_number }: Contact) => mobileKey(mobile_prefix, mobile_number, country)
  const [email, mobile] = [emailKey(merged.email), mobileOf(merged)]
  return {
    email_key: email === emailKey(survivor.email) ? null : email,
    mobile_key: mobile === mobileOf(survivor) ? null : mobile,
  }
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
