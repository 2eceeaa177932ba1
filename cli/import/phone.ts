import { fieldsOf, isCountry, readPhone } from '../../src/values/phone-numbers.ts'
import type { PhoneSplitter } from '../../transfer/profile-answers.ts'
import { UsageError } from '../command.ts'

/** Splits the numbers of a file. `country` is the ISO 3166 code of numbers without a country prefix. */
export function createPhoneSplitter(country: string | undefined): PhoneSplitter {
  if (country !== undefined && !isCountry(country))
    throw new UsageError(`--phone-country ${country} is not a country. Give its two letters, such as DE.`)
  return text => {
    const read = readPhone(text, { country })
    const fields = read && fieldsOf(read)
    if (fields) return fields
    const hint = country === undefined ? '. Name the country of numbers without a prefix with --phone-country' : ''
    throw new Error(`${JSON.stringify(text)} is not a phone number such as +49 1512 3456789${hint}`)
  }
}
