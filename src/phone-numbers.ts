import { createRequire } from 'node:module'
import type { CountryCode } from 'libphonenumber-js/max'

/** A phone number: the calling code of its country, the number in the country, both as E.164, and the extension that it may have. */
export type PhoneNumber = { callingCode: string; national: string; e164: string; extension: string | null }

/** What a number without a prefix of its own belongs to: a calling code (`39`, `+39` or `0039`) or, without one, a country (ISO 3166). */
export type PhoneHome = { prefix?: string | null | undefined; country?: string | null | undefined }

/**
 * Reads a whole text as one phone number. Undefined if it is none: words around a number are none, and neither is a number that no
 * numbering plan makes possible. A number that begins with `+` or `00` overrides the prefix and the country. Only the country is a guess, so
 * what is read with it must be a number that the country has given out, and must not be that of another country without its `+` as well.
 */
export function readPhone(text: string, { prefix, country }: PhoneHome = {}): PhoneNumber | undefined {
  const written = text.normalize('NFKC').trim()
  if (written.startsWith('+')) return possible(written)
  if (written.startsWith('00')) return possible(`+${written.slice(2)}`)
  if (!prefix) return country && isCountry(country) ? guessed(written, country) : undefined
  const digits = prefix.normalize('NFKC').replace(/[\s().-]/g, '')
  const callingCode = /^(?:\+|00)?([1-9]\d*)$/.exec(digits)?.[1]
  if (callingCode === undefined) return undefined
  // A prefix such as 1242 has an area code behind the calling code.
  const isCallingCode = numberingPlans().callingCodes.has(callingCode)
  return isCallingCode ? possible(written, callingCode) : possible(`+${callingCode} ${written}`)
}

/**
 * The phone number in E.164, such as `+393331234567`; null for a text that is no number, and for a number with an
 * extension, which others share. `country` is the one of numbers without a prefix, if the organization names it.
 */
export function mobileKey(
  prefix: string | null | undefined,
  number: string | null | undefined,
  country: string | null,
): string | null {
  const read = number ? readPhone(number, { prefix, country }) : undefined
  return read?.extension === null ? read.e164 : null
}

/** Completes "mobile_number …". */
export const notANumber =
  'is not a phone number with its country: give mobile_prefix, such as +39, or begin the number with +'

/** Whether a text is the ISO 3166 code of a country that has a numbering plan. */
export const isCountry = (text: string): text is CountryCode => numberingPlans().isSupportedCountry(text)

function possible(text: string, defaultCallingCode?: string): PhoneNumber | undefined {
  const options = { extract: false, ...(defaultCallingCode !== undefined && { defaultCallingCode }) }
  const parsed = numberingPlans().parse(text, options)
  return parsed?.isPossible() ? numberOf(parsed) : undefined
}

function guessed(text: string, defaultCountry: CountryCode): PhoneNumber | undefined {
  const parsed = numberingPlans().parse(text, { extract: false, defaultCountry })
  if (!parsed?.isValid()) return undefined
  const { callingCode, national } = numberOf(parsed)
  const isAmbiguous = national.startsWith(callingCode) && numberingPlans().parse(`+${national}`)?.isValid()
  return isAmbiguous ? undefined : numberOf(parsed)
}

type PhoneLibrary = typeof import('libphonenumber-js/max')
type Parsed = NonNullable<ReturnType<PhoneLibrary['parsePhoneNumberFromString']>>

const numberOf = ({ countryCallingCode, nationalNumber, number, ext }: Parsed): PhoneNumber => ({
  callingCode: countryCallingCode,
  national: nationalNumber,
  e164: number,
  extension: ext ?? null,
})

type NumberingPlans = Pick<PhoneLibrary, 'isSupportedCountry'> & {
  parse: PhoneLibrary['parsePhoneNumberFromString']
  callingCodes: ReadonlySet<string>
}

const require = createRequire(import.meta.url)
let loadedPlans: NumberingPlans | undefined

/** Loads the numbering plans with the first phone number. It takes 40 to 100 ms, which a start does not need. */
function numberingPlans(): NumberingPlans {
  if (loadedPlans) return loadedPlans
  const { parsePhoneNumberFromString, getCountries, getCountryCallingCode, isSupportedCountry }: PhoneLibrary =
    require('libphonenumber-js/max')
  const callingCodes = new Set<string>(getCountries().map(country => getCountryCallingCode(country)))
  loadedPlans = { parse: parsePhoneNumberFromString, callingCodes, isSupportedCountry }
  return loadedPlans
}
