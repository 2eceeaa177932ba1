import { foldText, wordsOf } from '../entities/indexes/search-words.ts'
import { emailKey, mobileKey } from '../entities/match-keys.ts'
import { createValueRefusal, Fault, pointer } from '../errors.ts'

const maxCharacters = 200
/** The words of a text are separated by white space. */
const maxWords = 8
/** An email or an identifier has several parts. All of them are looked up. */
const maxParts = 16

/** A text of digits with the marks of phone numbers is one number. With fewer digits it is no phone. */
const phone = /^\+?[\d\s().\-/]+$/
const minPhoneDigits = 6

/** The distinct words of a text, and the identifiers that it may be as a whole. */
export type SearchText = { words: string[]; external_id: string; email_key: string | null; mobile_key: string | null }

/** Parses the text of a search. Throws a Fault of 400 if there is nothing to look up, or too much. */
export function parseSearchText(text: string): SearchText {
  const folded = foldText(text)
  if ([...folded].length > maxCharacters) throwInvalidText(`must have at most ${maxCharacters} characters`)
  const isPhone = phone.test(folded) && folded.replace(/\D/g, '').length >= minPhoneDigits
  const words = isPhone ? [folded.replace(/\D/g, '').replace(/^00/, '')] : [...new Set(wordsOf(text))]
  if (words.length === 0) throwInvalidText('must have a letter or a digit')
  if (!isPhone && folded.trim().split(/\s+/).length > maxWords) throwInvalidText(`must have at most ${maxWords} words`)
  if (words.length > maxParts)
    throwInvalidText(`must have at most ${maxParts} words, counting the parts of emails and identifiers`)
  return {
    words,
    external_id: text,
    email_key: text.includes('@') ? emailKey(text) : null,
    mobile_key: isPhone ? mobileKey(null, text) : null,
  }
}

function throwInvalidText(message: string): never {
  throw new Fault(createValueRefusal(pointer('text'), message))
}
