import { createRequire } from 'node:module'
import type { CountryCode, MetadataJson } from 'libphonenumber-js/max'

/** A phone number: the calling code of its country, the number in the country, both as E.164, and the extension that it may have. */
export type PhoneNumber = { callingCode: string; national: string; e164: string; extension: string | null }

/** The fields of a person that have its number. */
export type PhoneFields = { mobile_prefix: string; mobile_number: string }

/** The home of numbers without a prefix: a calling code (`39`, `+39` or `0039`), or else a country (ISO 3166). */
export type PhoneHome = { prefix?: string | null | undefined; country?: string | null | undefined }

/**
 * Reads a whole text as one phone number. Undefined for a text with other words, and for a number that no numbering
 * plan allows. A number that begins with `+` or `00` overrides the prefix and the country. The country is only a guess:
 * a number that is read with it must be one that the country has given out, and must not also be a number of another
 * country without its `+`.
 */
export function readPhone(text: string, { prefix, country }: PhoneHome = {}): PhoneNumber | undefined {
  const written = (isAscii.test(text) ? text : text.normalize('NFKC')).trim()
  if (written.startsWith('+')) return possible(written)
  if (written.startsWith('00')) return possible(`+${written.slice(2)}`)
  if (!prefix) return country && isCountry(country) ? guessed(written, country) : undefined
  const callingCode = plainPrefix.test(prefix) ? prefix.slice(1) : digitsOfPrefix(prefix)
  if (callingCode === undefined) return undefined
  // A prefix such as 1242 has an area code behind the calling code.
  const isCallingCode = numberingPlans().callingCodes.has(callingCode)
  return isCallingCode ? possible(written, callingCode) : possible(`+${callingCode} ${written}`)
}

/** A number as fields of a person: with the prefix of its country, and written so that the service reads the same number with it. */
export function fieldsOf({ callingCode, national, e164, extension }: PhoneNumber): PhoneFields | undefined {
  const mobile_prefix = `+${callingCode}`
  const written = [national, e164].find(number => readPhone(number, { prefix: mobile_prefix })?.e164 === e164)
  if (written === undefined) return undefined
  return { mobile_prefix, mobile_number: extension === null ? written : `${written} ext. ${extension}` }
}

/**
 * The fields of a number of this country. It stays as it is written where the service reads the same number with the prefix, and where it
 * is none of the country. Undefined for a number that begins with its own prefix.
 */
export function fieldsIn(country: CountryCode, text: string): PhoneFields | undefined {
  if (isInternational.test(text)) return undefined
  const mobile_prefix = `+${numberingPlans().callingCodeOf(country)}`
  const read = guessed(text, country)
  const isKept = read === undefined || readPhone(text, { prefix: mobile_prefix })?.e164 === read.e164
  return (isKept ? undefined : fieldsOf(read)) ?? { mobile_prefix, mobile_number: text }
}

const isInternational = /^\s*(?:[+＋]|00)/

const isAscii = /^[\0-\x7f]*$/

/** A prefix as most are written. */
const plainPrefix = /^\+[1-9]\d*$/

const digitsOfPrefix = (prefix: string) =>
  /^(?:\+|00)?([1-9]\d*)$/.exec(prefix.normalize('NFKC').replace(/[\s().-]/g, ''))?.[1]

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

/** The digits of a number in E.164 as its country dials them: those of `+49 171 …` are `0171…`. */
export function dialledDigits(e164: string): string {
  const digits = e164.slice(1)
  const callingCode = callingCodeOf(digits)!
  return commonPlanOf(callingCode).dialledPrefix + digits.slice(callingCode.length)
}

/** Completes "mobile_number …". */
export const notANumber =
  'is not a phone number with its country: give mobile_prefix, such as +39, or begin the number with +'

/** The countries (ISO 3166) of each calling code, the main one first. */
export const countriesByCallingCode = (): Record<string, string[]> =>
  require('libphonenumber-js/max/metadata').country_calling_codes

/** Whether a text is the ISO 3166 code of a country that has a numbering plan. */
export const isCountry = (text: string): text is CountryCode => numberingPlans().isSupportedCountry(text)

function possible(text: string, defaultCallingCode?: string): PhoneNumber | undefined {
  return readPlain(text, defaultCallingCode) ?? parsePossible(text, defaultCallingCode)
}

/** A number that is written in digits, perhaps in groups. */
const plainText = /^\+?[\d ().-]+$/
const maxPlainLength = 40

/**
 * Reads a number that needs no rule of its numbering plan: it begins with no national prefix, and its length is possible in every country
 * of the calling code. Takes 1 µs where the parser takes 16. Undefined for any other text, which the parser reads.
 */
function readPlain(text: string, defaultCallingCode: string | undefined): PhoneNumber | undefined {
  if (text.length > maxPlainLength || !plainText.test(text)) return undefined
  const digits = text.replace(/\D+/g, '')
  const isInternational = text.startsWith('+')
  const callingCode = isInternational ? callingCodeOf(digits) : defaultCallingCode
  if (callingCode === undefined) return undefined
  const national = isInternational ? digits.slice(callingCode.length) : digits
  const { nationalPrefix, lengths, given } = commonPlanOf(callingCode)
  if (!lengths.has(national.length) || nationalPrefix?.test(national)) return undefined
  // The parser takes a calling code for that of an international number, unless the whole is a number that the country has given out.
  if (!isInternational && digits.startsWith(callingCode) && !given.test(digits)) return undefined
  return { callingCode, national, e164: `+${callingCode}${national}`, extension: null }
}

const maxCallingCodeLength = 3

/** The calling code that an international number begins with. None begins with another one. */
function callingCodeOf(digits: string): string | undefined {
  const { callingCodes } = numberingPlans()
  for (let length = 1; length <= maxCallingCodeLength; length += 1)
    if (callingCodes.has(digits.slice(0, length))) return digits.slice(0, length)
  return undefined
}

function parsePossible(text: string, defaultCallingCode: string | undefined): PhoneNumber | undefined {
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

/** The parts of the library's numbering plan that {@link readPlain} uses. */
type NumberingPlan = {
  possibleLengths(): number[]
  nationalPrefix(): string | 0
  nationalPrefixForParsing(): string | undefined
  nationalNumberPattern(): string
}

/**
 * The rules of a calling code that {@link readPlain} needs. `nationalPrefix` matches digits before a national number
 * that are no part of it, `dialledPrefix` are those that the main country writes there, `lengths` are possible in all
 * of its countries, and `given` matches the numbers that the main country has given out.
 */
type CommonPlan = {
  nationalPrefix: RegExp | undefined
  dialledPrefix: string
  lengths: ReadonlySet<number>
  given: RegExp
}

const commonPlans = new Map<string, CommonPlan>()

/** `callingCode` is one of the library. */
function commonPlanOf(callingCode: string): CommonPlan {
  const known = commonPlans.get(callingCode)
  if (known) return known
  const { planOf, countriesOf } = numberingPlans()
  const main = planOf(callingCode)
  const prefixPattern = main.nationalPrefixForParsing()
  const prefix = main.nationalPrefix() || ''
  const plan = {
    // North America does not write its 1, which is the calling code as well.
    dialledPrefix: prefix === callingCode ? '' : prefix,
    nationalPrefix: prefixPattern ? new RegExp(`^(?:${prefixPattern})`) : undefined,
    given: new RegExp(`^(?:${main.nationalNumberPattern()})$`),
    lengths: [callingCode, ...countriesOf(callingCode)]
      .map(name => new Set(planOf(name).possibleLengths()))
      .reduce((lengths, others) => lengths.intersection(others)),
  }
  commonPlans.set(callingCode, plan)
  return plan
}

const require = createRequire(import.meta.url)
let loadedPlans: ReturnType<typeof loadPlans> | undefined

/** Loads the numbering plans with the first phone number. It takes 40 to 100 ms, which a start does not need. */
function numberingPlans() {
  loadedPlans ??= loadPlans()
  return loadedPlans
}

function loadPlans() {
  const library: PhoneLibrary = require('libphonenumber-js/max')
  const { Metadata }: typeof import('libphonenumber-js/core') = require('libphonenumber-js/core')
  const plans: MetadataJson = require('libphonenumber-js/max/metadata')
  const { parsePhoneNumberFromString, isSupportedCountry } = library
  const countries = Map.groupBy<string, string>(library.getCountries(), country =>
    library.getCountryCallingCode(country as CountryCode),
  )
  /** The plan of a country or of the main country of a calling code. */
  const planOf = (name: string) => {
    const metadata = new Metadata(plans)
    metadata.selectNumberingPlan(name as CountryCode)
    return metadata.numberingPlan as unknown as NumberingPlan
  }
  return {
    parse: parsePhoneNumberFromString,
    callingCodes: new Set(countries.keys()),
    callingCodeOf: library.getCountryCallingCode,
    planOf,
    countriesOf: (callingCode: string) => countries.get(callingCode)!,
    isSupportedCountry,
  }
}
