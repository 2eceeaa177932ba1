import { createRequire } from 'node:module'
import type { CountryCode, MetadataJson } from 'libphonenumber-js/max'

/**
 * A phone number: the calling code of its country, the national number, the number in E.164, and the extension, if any.
 */
export type PhoneNumber = { callingCode: string; national: string; e164: string; extension: string | null }

/** The fields of a person with the phone number. */
export type PhoneFields = { mobile_prefix: string; mobile_number: string }

/** The home of numbers without a prefix: a calling code (`39`, `+39` or `0039`), or else a country (ISO 3166). */
export type PhoneHome = { prefix?: string | null | undefined; country?: string | null | undefined }

/**
 * Reads a whole text as one phone number. Undefined for a text with other words, and for a number that no numbering
 * plan allows. A number that begins with `+` or `00` overrides the prefix and the country. The country is only a guess:
 * a number that is read with it must be assigned in that country, and must not also be a number of another country
 * without its `+`.
 */
export function readPhone(text: string, { prefix, country }: PhoneHome = {}): PhoneNumber | undefined {
  const written = (isAscii.test(text) ? text : text.normalize('NFKC')).trim()
  if (written.startsWith('+')) return possible(written)
  if (written.startsWith('00')) return possible(`+${written.slice(2)}`)
  if (!prefix) return country && isCountry(country) ? guessed(written, country) : undefined
  const callingCode = plainPrefix.test(prefix) ? prefix.slice(1) : digitsOfPrefix(prefix)
  if (callingCode === undefined) return undefined
  // A prefix such as 1242 has an area code after the calling code.
  const isCallingCode = numberingPlans().callingCodes.has(callingCode)
  return isCallingCode ? possible(written, callingCode) : possible(`+${callingCode} ${written}`)
}

/**
 * The fields of a person for a number: the prefix of its country, and a text from which the service reads the same
 * number.
 */
export function fieldsOf({ callingCode, national, e164, extension }: PhoneNumber): PhoneFields | undefined {
  const mobile_prefix = `+${callingCode}`
  const written = [national, e164].find(number => readPhone(number, { prefix: mobile_prefix })?.e164 === e164)
  if (written === undefined) return undefined
  return { mobile_prefix, mobile_number: extension === null ? written : `${written} ext. ${extension}` }
}

/**
 * The fields of a number in this country. The text stays as written if the service reads the same number from it and
 * the prefix, or if it is no number of the country. Undefined for a number that begins with its own prefix.
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

/** The usual form of a prefix. */
const plainPrefix = /^\+[1-9]\d*$/

const digitsOfPrefix = (prefix: string) =>
  /^(?:\+|00)?([1-9]\d*)$/.exec(prefix.normalize('NFKC').replace(/[\s().-]/g, ''))?.[1]

/**
 * The phone number in E.164, such as `+393331234567`. Null for a text that is no number, and for a number with an
 * extension, which several people share. `country` applies to numbers without a prefix, if the organization has one.
 */
export function mobileKey(
  prefix: string | null | undefined,
  number: string | null | undefined,
  country: string | null,
): string | null {
  const read = number ? readPhone(number, { prefix, country }) : undefined
  return read?.extension === null ? read.e164 : null
}

/** The digits of an E.164 number as dialled in its country: `+49 171 …` becomes `0171…`. */
export function dialledDigits(e164: string): string {
  const digits = e164.slice(1)
  const callingCode = callingCodeOf(digits)!
  return commonPlanOf(callingCode).dialledPrefix + digits.slice(callingCode.length)
}

/** The end of a message that begins with "mobile_number". */
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

/** A number in digits, possibly in groups. */
const plainText = /^\+?[\d ().-]+$/
const maxPlainLength = 40

/**
 * Reads a number that needs no rule of its numbering plan: it begins with no national prefix, and its length is
 * possible in every country of the calling code. It takes 1 µs instead of the parser's 16. Undefined for any other
 * text, which the parser reads.
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
  // The parser reads a leading calling code as the start of an international number, unless the whole number is
  // assigned in the country.
  if (!isInternational && digits.startsWith(callingCode) && !given.test(digits)) return undefined
  return { callingCode, national, e164: `+${callingCode}${national}`, extension: null }
}

const maxCallingCodeLength = 3

/** The calling code at the beginning of an international number. No calling code is the beginning of another one. */
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
 * that are not part of it, `dialledPrefix` are the digits that the main country writes there, `lengths` are possible in
 * all of its countries, and `given` matches the assigned numbers of the main country.
 */
type CommonPlan = {
  nationalPrefix: RegExp | undefined
  dialledPrefix: string
  lengths: ReadonlySet<number>
  given: RegExp
}

const commonPlans = new Map<string, CommonPlan>()

/** Returns the rules of a calling code that the library knows. */
function commonPlanOf(callingCode: string): CommonPlan {
  const known = commonPlans.get(callingCode)
  if (known) return known
  const { planOf, countriesOf } = numberingPlans()
  const main = planOf(callingCode)
  const prefixPattern = main.nationalPrefixForParsing()
  const prefix = main.nationalPrefix() || ''
  const plan = {
    // North America does not write its national prefix 1, which equals the calling code.
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

/**
 * Loads the numbering plans when the first phone number is read. Loading takes 40 to 100 ms, which the start avoids.
 */
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
