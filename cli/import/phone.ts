import type { PhoneSplitter } from '../../transfer/profile-answers.ts'
import { UsageError } from '../command.ts'

/** Loads the numbering plans. `country` is the ISO 3166 code of numbers without a country prefix. */
export async function loadPhoneSplitter(country: string | undefined): Promise<PhoneSplitter> {
  // The numbering plans are large, and only an import with a profile needs them.
  const { isSupportedCountry, parsePhoneNumberFromString } = await import('libphonenumber-js/min')
  if (country !== undefined && !isSupportedCountry(country))
    throw new UsageError(`--phone-country ${country} is not a country. Give its two letters, such as DE.`)
  return text => {
    const number = parsePhoneNumberFromString(text, { ...(country !== undefined && { defaultCountry: country }) })
    if (number?.isPossible())
      return { mobile_prefix: `+${number.countryCallingCode}`, mobile_number: String(number.nationalNumber) }
    const hint = country === undefined ? '. Name the country of numbers without a prefix with --phone-country' : ''
    throw new Error(`${JSON.stringify(text)} is not a phone number such as +49 1512 3456789${hint}`)
  }
}
