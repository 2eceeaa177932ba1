import { backwards, foldText, isOfPairs, maxLastDigits, searchedWordsOf } from '../entities/indexes/search-words.ts'
import { emailKey } from '../entities/match-keys.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { mobileKey } from '../values/phone-numbers.ts'

const maxCharacters = 200
/**
 * The maximum number of words of a text. White space separates words, each of which has a letter or a digit. A phone
 * number is one word.
 */
const maxWords = 8
/**
 * The maximum number of parts of a text. An email or an identifier has several, and all are looked up. Pairs of
 * characters do not count.
 */
const maxParts = 16
/**
 * For a text with more words than this, pairs included, the search looks up every second pair, and no similar words.
 */
export const maxOverlapping = 16

/** A text that may be a phone number as a whole. */
const phone = /^\+?[\d\s().\-/]+$/
/** The words of a text that may form a phone number: digits and the marks of a number, up to the next other word. */
const phoneWords = /(?<=^|\s)[+\d().\-/][\d\s().\-/]*(?=\s|$)/g
/** A partly typed number has fewer digits than any phone: `333 1` is the beginning of one. */
const minPhoneDigits = 4

/** The last digits of a phone, by which people remember it. */
const lastDigits = new RegExp(`^\\d{${minPhoneDigits},${maxLastDigits}}$`)

/**
 * The readings of a text, and the whole text. A reading is a list of distinct words, and an entity matches if it has
 * all words of one reading. The first reading has the words as written. If a number has several words or parts, another
 * reading has its digits as one word. If digits may be the last ones of a phone, another reading has them in reverse
 * order.
 */
export type SearchText = {
  readings: string[][]
  external_id: string
  email_key: string | null
  mobile_key: string | null
}

/**
 * Parses the text of a search in a stack. `country` applies to phone numbers without a prefix. Throws a Fault of 400
 * for a text with too much to look up.
 */
export function parseSearchText(text: string, stack_id: number, country: string | null): SearchText {
  const folded = foldText(text)
  // Only people have phones.
  const joined = stack_id === peopleStackId ? folded.replace(phoneWords, joinPhone) : folded
  const [written, withPhones] = [distinctWords(folded), distinctWords(joined)]
  // A text without a letter or a digit has no reading, so its length does not matter. It matches only an identifier.
  if (written.length > 0) throwIfTooLong(folded, joined, withPhones)
  const isSame = withPhones.join(' ') === written.join(' ')
  const byLastDigits =
    stack_id === peopleStackId ? withPhones.map(word => (lastDigits.test(word) ? backwards(word) : word)) : withPhones
  return {
    readings: [
      ...(countParts(written) <= maxParts ? [written] : []),
      ...(isSame ? [] : [withPhones]),
      ...(byLastDigits.some((word, index) => word !== withPhones[index]) ? [byLastDigits] : []),
    ].filter(({ length }) => length > 0),
    external_id: text,
    email_key: text.includes('@') ? emailKey(text) : null,
    mobile_key: phone.test(folded) ? mobileKey(null, text, country) : null,
  }
}

function throwIfTooLong(folded: string, joined: string, parts: readonly string[]) {
  if ([...folded].length > maxCharacters) throwBrokenRule('/text', `must have at most ${maxCharacters} characters`)
  if (countWords(joined) > maxWords) throwBrokenRule('/text', `must have at most ${maxWords} words`)
  if (countParts(parts) > maxParts)
    throwBrokenRule('/text', `must have at most ${maxParts} words, counting the parts of emails and identifiers`)
}

const countWords = (text: string) => text.split(/\s+/).filter(word => /[\p{L}\p{N}]/u.test(word)).length

const countParts = (words: readonly string[]) => words.filter(word => !isOfPairs(word)).length

function distinctWords(text: string): string[] {
  const words = new Set(searchedWordsOf(text))
  return [...(words.size <= maxOverlapping ? words : new Set(searchedWordsOf(text, { isSparse: true })))]
}

/**
 * The digits of a number in the form of the index: without the leading 00 of an international number. `00 21` stays,
 * because these are last digits.
 */
function joinPhone(written: string): string {
  const digits = written.replace(/\D/g, '').replace(/^00(?=\d{4})/, '')
  return digits.length >= minPhoneDigits ? digits : written
}
