import { createHash } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { type Channel, channels, channelTable } from '../values/channels.ts'
import { mobileKey } from '../values/phone-numbers.ts'
import type { Columns, Profile } from './entity-row.ts'

/** The keys that people are recognized by. Two people with the same key may be one person; no key is unique. */
export type MatchKeys = { email_key: string | null; mobile_key: string | null; name_key: string | null }

/** The profile fields that a key follows from. */
export type KeyFields = Pick<
  Profile,
  'first_name' | 'last_name' | 'email' | 'mobile_prefix' | 'mobile_number' | 'date_of_birth'
>

/** The fields of each key. A write that changes none of them keeps the key. */
export const fieldsByKey = {
  email_key: ['email'],
  mobile_key: ['mobile_prefix', 'mobile_number'],
  name_key: ['first_name', 'last_name', 'date_of_birth'],
} as const satisfies Record<keyof MatchKeys, readonly (keyof KeyFields)[]>

const keyNames = Object.keys(fieldsByKey) as (keyof MatchKeys)[]

/**
 * The email in lower case and Unicode normalization form C, its domain in ASCII as UTS 46 maps it: `bücher.example` and
 * `xn--bcher-kva.example` are one. Dots and plus signs stay: providers treat them differently.
 */
export function emailKey(email: string | null | undefined): string | null {
  if (!email) return null
  const folded = email.normalize('NFC').toLowerCase()
  const at = folded.lastIndexOf('@') + 1
  const domain = folded.slice(at)
  // A domain that UTS 46 does not map stays as it is.
  return bounded(isAscii.test(domain) ? folded : folded.slice(0, at) + (domainToASCII(domain) || domain))
}

const isAscii = /^[\0-\x7f]*$/

/**
 * First name, last name and date of birth, without differences of case, of white space and of Unicode compatibility.
 * Null without a last name or a date of birth, because too many people share the rest.
 */
export function nameAndBirthKey({
  first_name,
  last_name,
  date_of_birth,
}: Pick<KeyFields, 'first_name' | 'last_name' | 'date_of_birth'>): string | null {
  if (!last_name || !date_of_birth) return null
  const last = foldName(last_name)
  if (last === '') return null
  return bounded([foldName(first_name), last, date_of_birth].join('\n'))
}

const foldName = (name: string | null | undefined) =>
  (name ?? '')
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFKC')
    .replace(/\p{White_Space}+/gu, ' ')
    .trim()

/** An index entry of PostgreSQL has at most 2,704 bytes. A character has at most four. */
const maxKeyLength = 600

const bounded = (key: string) =>
  key.length <= maxKeyLength ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`

const keyOf: { [Key in keyof MatchKeys]: (fields: Partial<KeyFields>, country: string | null) => MatchKeys[Key] } = {
  email_key: ({ email }) => emailKey(email),
  mobile_key: ({ mobile_prefix, mobile_number }, country) => mobileKey(mobile_prefix, mobile_number, country),
  name_key: fields => nameAndBirthKey(fields as KeyFields),
}

/** Returns all keys of a person. `country` is that of phone numbers without a prefix. */
export function matchKeys(fields: Partial<KeyFields>, country: string | null): MatchKeys {
  const keysOf = (name: keyof MatchKeys) => keyOf[name](fields, country)
  return { email_key: keysOf('email_key'), mobile_key: keysOf('mobile_key'), name_key: keysOf('name_key') }
}

/**
 * Returns the keys whose fields `columns` changes. `row` is the person before. The other keys are not computed, because
 * a phone takes up to 14 µs.
 */
export function changedMatchKeys(row: Profile, columns: Columns, country: string | null): Partial<MatchKeys> {
  let keys: Partial<MatchKeys> = {}
  for (const key of keyNames)
    if (fieldsByKey[key].some(field => columns[field] !== undefined)) {
      const fields = fieldsByKey[key].map(field => [field, columns[field] === undefined ? row[field] : columns[field]])
      keys = { ...keys, [key]: keyOf[key](Object.fromEntries(fields), country) }
    }
  return keys
}

/** The fields from which addresses follow. */
export const addressFields = channels.flatMap(channel => [...fieldsByKey[channelTable[channel].key]])

/** The address of a person on a channel, as the key of its row. */
export const addressKey = (fields: Partial<KeyFields>, channel: Channel, country: string | null): string | null =>
  keyOf[channelTable[channel].key](fields, country)
