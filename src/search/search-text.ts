import { backwards, foldText, isOfPairs, maxLastDigits, searchedWordsOf } from '../entities/indexes/search-words.ts'
import { emailKey } from '../entities/match-keys.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { mobileKey } from '../values/phone-numbers.ts'

const maxCharacters = 200
/** The words of a text are separated by white space, and have a letter or a digit. A phone number is one word. */
const maxWords = 8
/** An email or an identifier has several parts. All of them are looked up. Pairs of characters do not count. */
const maxParts = 16
/** A text with more words than this, pairs included, is looked up by every second pair, and has no similar words. */
export const maxOverlapping = 16

/** A text that may be a phone number as a whole. */
const phone = /^\+?[\d\s().\-/]+$/
/** The words of a text that may be a phone number: digits with the marks of one, up to the next word that has anything else. */
const phoneWords = /(?<=^|\s)[+\d().\-/][\d\s().\-/]*(?=\s|$)/g
/** A number that is still being typed has fewer digits than any phone: `333 1` is the beginning of one. */
const minPhoneDigits = 4

/** The last digits of a phone. People know a number by them. */
const lastDigits = new RegExp(`^\\d{${minPhoneDigits},${maxLastDigits}}$`)

/**
 * The readings of a text, and the text as a whole. A reading is a list of distinct words. An entity is found if it has
 * all words of one reading. The first reading has the words as they are written. If a number has several words or
 * parts, another reading has its digits as one word. If digits may be the last ones of a phone, another reading has
 * them backwards.
 */
export type SearchText = {
  readings: string[][]
  external_id: string
  email_key: string | null
  mobile_key: string | null
}

/** Parses the text of a search in a stack. `country` is that of phone numbers without a prefix. Throws a Fault of 400 if there is too much to look up. */
export function parseSearchText(text: string, stack_id: number, country: string | null): SearchText {
  const folded = foldText(text)
  // Only people have phones.
  const joined = stack_id === peopleStackId ? folded.replace(phoneWords, joinPhone) : folded
  const [written, withPhones] = [distinctWords(folded), distinctWords(joined)]
  // A text without a letter or a digit has no reading, however long it is. It finds only an identifier.
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

/** The digits of a number as the index has those of phones: without the leading 00 of an international one, but `00 21` are last digits. */
function joinPhone(written: string): string {
  const digits = written.replace(/\D/g, '').replace(/^00(?=\d{4})/, '')
  return digits.length >= minPhoneDigits ? digits : written
}
