import fc from 'fast-check'
import examples from 'libphonenumber-js/examples.mobile.json'
import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  getExampleNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { expect, it } from 'vitest'
import { createPhoneSplitter } from '../../cli/import/phone.ts'
import { dialledDigits, mobileKey, readPhone } from './phone-numbers.ts'

it.each([
  ['+1 650 253 0000', {}, '+16502530000', null],
  ['+1 650 253 0000 ext. 12', {}, '+16502530000', '12'],
  ['650 253 0000', { prefix: '1' }, '+16502530000', null],
  ['01512 3456789', { country: 'DE' }, '+4915123456789', null],
  ['01512 3456789 ext. 4', { country: 'DE' }, '+4915123456789', '4'],
  ['0039 333 1234567', { country: 'DE' }, '+393331234567', null],
  ['333 1234567', { prefix: '39', country: 'DE' }, '+393331234567', null],
  ['447911123456', { country: 'GB' }, '+447911123456', null],
])('reads %j with %j as %s', (text, home, e164, extension) => {
  expect(readPhone(text, home)).toMatchObject({ e164, extension })
})

it.each([
  ['private +49 1512 3456789, ask for Anna', {}],
  ['+49 1512 3456789, +49 1512 3456788', {}],
  ['n/a', { country: 'DE' }],
  ['333 1234567', {}],
  ['333 1234567', { prefix: '999', country: 'IT' }],
  ['1990', { country: 'DE' }],
  ['12345', { country: 'DE' }],
  ['0000000000', { country: 'DE' }],
  ['4915123456789', { country: 'DE' }],
  ['1512345678', { country: 'XX' }],
])('reads %j with %j as no number', (text, home) => {
  expect(readPhone(text, home)).toBeUndefined()
})

it.each([
  ['+491711000003', '01711000003'],
  ['+390612345678', '0612345678'],
  ['+393331234567', '3331234567'],
  ['+16502530000', '6502530000'],
  ['+36201234567', '06201234567'],
  ['+79123456789', '89123456789'],
])('knows that %s is dialled as %s in its country', (e164, dialled) => {
  expect(dialledDigits(e164)).toBe(dialled)
})

it('reads what the country of a number dials as that number', () => {
  // Colombia dials a 0 that its numbering plan counts as a part of the number.
  for (const country of getCountries().filter(country => country !== 'CO')) {
    const { number, countryCallingCode } = getExampleNumber(country, examples)!
    expect(readPhone(dialledDigits(number), { prefix: countryCallingCode })?.e164).toBe(number)
  }
})

const cell = fc.oneof(
  fc.stringMatching(/^[+0]{0,2}[\d ()/.-]{1,20}(?: ext\. ?\d{1,4})?$/),
  fc.stringMatching(/^\+(?:39|49|1|7|44|54|52|55)[\d ]{4,14}(?: x\d{1,3})?$/),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

it('splits a cell of a file into what the service reads as the same number, with its extension, or refuses it', () => {
  fc.assert(
    fc.property(cell, fc.constantFrom(undefined, 'DE', 'IT', 'US', 'AR', 'RU'), (text, country) => {
      const read = readPhone(text, { country })
      const splitter = createPhoneSplitter(country)
      // The parser does not read a number of zeros back.
      if (!read || readPhone(read.e164)?.e164 !== read.e164) {
        expect(() => splitter(text)).toThrow('is not a phone number')
        return
      }
      const { mobile_prefix, mobile_number } = splitter(text)
      expect(readPhone(mobile_number, { prefix: mobile_prefix })).toMatchObject({
        e164: read.e164,
        extension: read.extension,
      })
      // Several people share a number with an extension, so it identifies no person.
      expect(mobileKey(mobile_prefix, mobile_number, null)).toBe(read.extension === null ? read.e164 : null)
    }),
    { numRuns: 2_000 },
  )
})

/**
 * Generates numbers near the numbers of a country: with a digit added, removed or changed, with a prefix, and in
 * groups.
 */
const nearExample = fc
  .record({
    country: fc.constantFrom(...getCountries()),
    edits: fc.array(fc.record({ at: fc.nat(14), drop: fc.nat(1), digits: fc.stringMatching(/^\d{0,2}$/) }), {
      maxLength: 3,
    }),
    isPrefixed: fc.boolean(),
    start: fc.constantFrom('', '', '0', '8', '1', 'calling code'),
    group: fc.constantFrom('', '', ' ', '-', '.', ') ', ' ('),
  })
  .map(({ country, edits, isPrefixed, start, group }) => {
    const callingCode = getCountryCallingCode(country)
    let national: string = getExampleNumber(country as CountryCode, examples)!.nationalNumber
    for (const { at, drop, digits } of edits) national = national.slice(0, at) + digits + national.slice(at + drop)
    national = (start === 'calling code' ? callingCode : start) + national
    const text = group === '' ? national : `${national.slice(0, 3)}${group}${national.slice(3)}`
    return isPrefixed ? { text, prefix: callingCode } : { text: `+${callingCode}${text}`, prefix: undefined }
  })

it('reads every number as the parser of numbering plans does, also those that it reads without it', () => {
  fc.assert(
    fc.property(nearExample, ({ text, prefix }) => {
      const isNational = prefix !== undefined && !text.startsWith('00')
      const parsed = isNational
        ? parsePhoneNumberFromString(text, { extract: false, defaultCallingCode: prefix })
        : parsePhoneNumberFromString(text.replace(/^00/, '+'), { extract: false })
      const expected = parsed?.isPossible()
        ? {
            e164: parsed.number,
            callingCode: parsed.countryCallingCode,
            national: parsed.nationalNumber,
            extension: null,
          }
        : undefined
      expect(readPhone(text, { prefix })).toEqual(expected)
    }),
    { numRuns: 5_000 },
  )
})
