import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { CountryCode, NumberingPlan } from 'libphonenumber-js/min'
import { createRefusal, type Refusal } from '../errors.ts'
import type { Columns, Profile } from './entity-row.ts'

/** The keys that people are recognized by. Two people with the same key may be one person; no key is unique. */
export type MatchKeys = { email_key: string | null; mobile_key: string | null; name_key: string | null }

/** The profile fields that a key follows from. */
type KeyFields = Pick<
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

/** The email in lower case and Unicode normalization form C. Dots and plus signs stay: providers treat them differently. */
export const emailKey = (email: string | null | undefined): string | null =>
  email ? bounded(email.normalize('NFC').toLowerCase()) : null

/**
 * The phone number in E.164, such as `+393331234567`; null for a number that no numbering plan makes possible, and for one
 * with an extension, which others share. `prefix` is a country's calling code (`39`, `+39` or `0039`). A number that
 * begins with `+` or `00` needs none and overrides it.
 */
export function mobileKey(prefix: string | null | undefined, number: string | null | undefined): string | null {
  if (!number) return null
  const text = number.normalize('NFKC').trim()
  if (text.startsWith('+')) return e164Of(text)
  if (text.startsWith('00')) return e164Of(`+${text.slice(2)}`)
  const digits = (prefix ?? '').normalize('NFKC').replace(/[\s().-]/g, '')
  const callingCode = /^(?:\+|00)?([1-9]\d*)$/.exec(digits)?.[1]
  if (callingCode === undefined) return null
  // A prefix such as 1242 has an area code behind the calling code.
  return numberingPlans().callingCodes.has(callingCode) ? e164Of(text, callingCode) : e164Of(`+${callingCode} ${text}`)
}

function e164Of(text: string, callingCode?: string): string | null {
  const plans = numberingPlans()
  if (callingCode !== undefined && plans.isComplete(callingCode, text)) return `+${callingCode}${text}`
  const options = { extract: false, ...(callingCode !== undefined && { defaultCallingCode: callingCode }) }
  const parsed = plans.parse(text, options)
  return parsed?.isPossible() && parsed.ext === undefined ? parsed.number : null
}

type PhoneLibrary = typeof import('libphonenumber-js/min')
type NumberingPlans = {
  parse: PhoneLibrary['parsePhoneNumberFromString']
  callingCodes: ReadonlySet<string>
  /** Whether digits are the whole national number, without a trunk prefix or the calling code, so that nothing is to be parsed. */
  isComplete(callingCode: string, text: string): boolean
}

const require = createRequire(import.meta.url)
let loadedPlans: NumberingPlans | undefined

/** Loads the numbering plans with the first phone number. It takes 40 to 100 ms, which a start does not need. */
function numberingPlans(): NumberingPlans {
  loadedPlans ??= loadPlans(require('libphonenumber-js/min'))
  return loadedPlans
}

/** The trunk prefixes of a calling code, and the lengths that a national number may have in all of its countries. */
type SimplePlan = { trunkPrefixes: readonly string[]; lengths: readonly number[] }

function loadPlans({
  parsePhoneNumberFromString,
  getCountries,
  getCountryCallingCode,
  Metadata,
}: PhoneLibrary): NumberingPlans {
  const planOf = (country: string) => {
    const metadata = new Metadata()
    metadata.selectNumberingPlan(country as CountryCode)
    return metadata.numberingPlan as NumberingPlan & { nationalPrefixForParsing(): string | undefined }
  }
  const byCallingCode = Map.groupBy(getCountries(), country => getCountryCallingCode(country) as string)
  // Parsing takes 8 to 50 µs, a tenth or more of an import's time for each line.
  const simplePlans = new Map<string, SimplePlan>()
  for (const [callingCode, countries] of byCallingCode) {
    // A calling code stands for the main one of its countries.
    const trunkPrefixes = planOf(callingCode).nationalPrefixForParsing() || ''
    const [lengths, ...others] = countries.map(country => planOf(country).possibleLengths())
    if (/^[\d|]*$/.test(trunkPrefixes))
      simplePlans.set(callingCode, {
        trunkPrefixes: trunkPrefixes.split('|').filter(prefix => prefix !== ''),
        lengths: lengths!.filter(length => others.every(other => other.includes(length))),
      })
  }
  const isComplete = (callingCode: string, text: string) => {
    const plan = simplePlans.get(callingCode)
    return (
      plan !== undefined &&
      /^\d+$/.test(text) &&
      plan.lengths.includes(text.length) &&
      !text.startsWith(callingCode) &&
      !plan.trunkPrefixes.some(prefix => text.startsWith(prefix))
    )
  }
  return { parse: parsePhoneNumberFromString, callingCodes: new Set(byCallingCode.keys()), isComplete }
}

/**
 * First name, last name and date of birth, without differences of case, of white space and of Unicode compatibility. Null
 * without a last name or a date of birth, because too many people share the rest.
 */
export function nameAndBirthKey({
  first_name,
  last_name,
  date_of_birth,
}: Pick<KeyFields, 'first_name' | 'last_name' | 'date_of_birth'>): string | null {
  const last = foldName(last_name)
  if (last === '' || !date_of_birth) return null
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

/** Returns all keys of a person. */
export function matchKeys(fields: Partial<KeyFields>): MatchKeys {
  return {
    email_key: emailKey(fields.email),
    mobile_key: mobileKey(fields.mobile_prefix, fields.mobile_number),
    name_key: nameAndBirthKey(fields as KeyFields),
  }
}

/** Returns the keys whose fields `columns` changes. `row` is the person before. */
export function changedMatchKeys(row: Profile, columns: Columns): Partial<MatchKeys> {
  const changed = keyNames.filter(key => fieldsByKey[key].some(field => columns[field] !== undefined))
  if (changed.length === 0) return noKeys
  const keys = matchKeys({ ...row, ...columns })
  return Object.fromEntries(changed.map(key => [key, keys[key]]))
}

const noKeys: Partial<MatchKeys> = {}

/** The 503 while people of an earlier release have no keys yet: an answer would miss them. */
export const fillingRefusal = (): Refusal =>
  createRefusal(
    'operation_failed',
    'kith is still indexing the emails and phones of existing people. Retry in a few seconds.',
    { status: 503, headers: { 'Retry-After': '5' } },
  )
