import { firstCharacters } from './index-keys.ts'

/**
 * The maximum length of a word, in documents and in requests. kith cuts off the rest. Scripts without spaces have pairs
 * instead of words.
 */
const maxWordCharacters = 64

/** Letters that Unicode does not decompose into a base letter and a mark. */
const plainLetters: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ħ: 'h',
  ŧ: 't',
  ı: 'i',
  ĸ: 'k',
  ŋ: 'n',
  ς: 'σ',
}
const undecomposed = new RegExp(`[${Object.keys(plainLetters).join('')}]`, 'gu')

// Marks, apostrophes, and invisible characters, such as the soft hyphens, zero-width characters and direction marks of
// copied texts.
const insideWords = /[\p{M}'’ʼ`´\p{Default_Ignorable_Code_Point}]/gu

/**
 * The text without differences of case, accents and Unicode compatibility. It has no apostrophes either, so that
 * O'Neill is one word.
 */
export const foldText = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(insideWords, '')
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(undecomposed, letter => plainLetters[letter]!)

/** The letters of the scripts that put no spaces between words. */
const unspacedLetters = `[[${['Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
  .map(script => `\\p{scx=${script}}`)
  .join('')}]&&\\p{L}]`
const runs = new RegExp(`${unspacedLetters}+|[[\\p{L}\\p{N}]--${unspacedLetters}]+`, 'gv')
const beginsUnspaced = new RegExp(`^${unspacedLetters}`, 'v')

/** Whether a word is a pair of characters, or one, of a script without spaces. */
export const isOfPairs = (word: string): boolean => beginsUnspaced.test(word)

/**
 * The form of the words. Increase it if a change gives a text other words: the follower of the search then fills the
 * indexes with words of another form again.
 */
export const wordsForm = 4

/** A phone is found by at most this many of its last digits. */
export const maxLastDigits = 9

/**
 * The word with the last digits of a phone backwards, so that a search by fewer digits searches for its beginning. No
 * text contains it, because the words of texts are in lower case.
 */
export const backwards = (digits: string): string => `B${[...digits.slice(-maxLastDigits)].reverse().join('')}`

/**
 * The words of a text that kith stores: its runs of letters and digits, folded and in order. A run of a script without
 * spaces has a word for each pair of neighboring characters and one for its last character, so that a search finds each
 * part of it.
 */
export const wordsOf = (text: string): string[] =>
  runsOf(text).flatMap(run => {
    if (!isOfPairs(run)) return [cutWord(run)]
    const characters = charactersOf(run)
    return [...pairsOf(characters), wordOf(characters.slice(-1))]
  })

/**
 * The words that a search looks up for a text. They differ from {@link wordsOf} in scripts without spaces, where a run
 * has only its pairs, or its only character. With `isSparse`, each character is in one pair, but the last two always
 * form a pair.
 */
export const searchedWordsOf = (text: string, { isSparse = false } = {}): string[] =>
  runsOf(text).flatMap(run => {
    if (!isOfPairs(run)) return [cutWord(run)]
    const characters = charactersOf(run)
    if (characters.length === 1) return [run]
    return pairsOf(characters).filter((_, index, { length }) => !isSparse || index % 2 === 0 || index === length - 1)
  })

/** The pair of the last character of one text and the first one of another, if both are of scripts without spaces. */
export function pairAcross(first: string, second: string): string[] {
  const [last, next] = [runsOf(first).at(-1), runsOf(second)[0]]
  if (last === undefined || next === undefined || !isOfPairs(last) || !isOfPairs(next)) return []
  return [wordOf([charactersOf(last).at(-1)!, charactersOf(next)[0]!])]
}

const runsOf = (text: string): string[] => foldText(text).match(runs) ?? []

// A character of Hangul is a syllable. Its word has the letters of the syllables, so that a search finds a syllable
// while it is typed.
const charactersOf = (run: string): string[] => [...run.normalize('NFC')]
const wordOf = (characters: readonly string[]): string => characters.join('').normalize('NFD')
const pairsOf = (characters: readonly string[]): string[] =>
  characters.slice(1).map((character, index) => wordOf([characters[index]!, character]))

const cutWord = (word: string) => firstCharacters(word, maxWordCharacters)

/**
 * The maximum length of a word that is also found by its remainders without one letter. One wrong letter changes most
 * of its trigrams.
 */
const maxShortLetters = 6
/** The minimum length of a word that has trigrams. Below it, a word is short. */
const minTrigramLetters = 6

/** Whether other words can be similar to the word. A number that differs in a digit is another number. */
export const hasSimilarWords = (word: string): boolean => /^\p{L}{3,}$/u.test(word)

/** The remainders of a short word without one letter, and the word itself, each after a hyphen. */
function remaindersOf(letters: readonly string[]): string[] {
  if (letters.length > maxShortLetters) return []
  return [letters, ...letters.map((_, index) => letters.toSpliced(index, 1))].map(rest => `-${rest.join('')}`)
}

/**
 * The features that a word shares with similar words: its trigrams, with the length of the word and their position, and
 * its remainders.
 */
export function featuresOf(word: string): string[] {
  if (!hasSimilarWords(word)) return []
  const letters = [...word]
  const trigrams = trigramsOf(letters).map((trigram, position) => placedTrigram(trigram, letters.length, position))
  return [...new Set([...trigrams, ...remaindersOf(letters)])]
}

/**
 * The features of words that may be similar to this one: lengths and positions differ by at most the number of typos.
 */
export function featuresOfSimilar(word: string): { trigrams: string[]; remainders: string[] } {
  if (!hasSimilarWords(word)) return { trigrams: [], remainders: [] }
  const letters = [...word]
  const max = maxTypos(word)
  const shifts = Array.from({ length: 2 * max + 1 }, (_, index) => index - max)
  const trigrams = new Set<string>()
  for (const [position, trigram] of trigramsOf(letters).entries())
    for (const longer of shifts)
      for (const shift of shifts) trigrams.add(placedTrigram(trigram, letters.length + longer, position + shift))
  return { trigrams: [...trigrams], remainders: [...new Set(remaindersOf(letters))] }
}

/**
 * A typo changes three trigrams of a word, and two swapped letters change four. Two typos therefore change at most
 * eight.
 */
const maxChangedTrigrams = 8

/**
 * The number of trigrams that a similar word shares. A word has as many trigrams as letters, so two typos always leave
 * one in a word of nine letters. With two typos, 9 % of the words of six letters share none, 2 % of those of seven, and
 * 0.1 % of those of eight.
 */
export function minSharedTrigrams(word: string): number {
  const { length } = [...word]
  return Math.max(1, Math.min(length - maxChangedTrigrams, Math.ceil(length * 0.3)))
}

/** Without length and position, PostgreSQL would read all words with a frequent trigram, ten times as many. */
const placedTrigram = (trigram: string, length: number, position: number) =>
  `${trigram}${Math.max(0, length)}.${Math.max(0, position)}`

function trigramsOf(letters: readonly string[]): string[] {
  if (letters.length < minTrigramLetters) return []
  const padded = [' ', ...letters, ' ']
  return padded.slice(2).map((letter, index) => `${padded[index]}${padded[index + 1]}${letter}`)
}

/** The maximum number of typing errors between a word and one that is similar to it. */
export const maxTypos = (word: string): number => ([...word].length < 6 ? 1 : 2)

/**
 * The number of typing errors between two words: letters that are missing, too many, wrong, or swapped with the next
 * one (the optimal string alignment distance).
 */
export function countTypos(first: string, second: string): number {
  const [from, to] = [[...first], [...second]]
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const isWrong = from[row - 1] === to[column - 1] ? 0 : 1
      let typos = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + isWrong)
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (isSwapped) typos = Math.min(typos, beforeLast[column - 2]! + 1)
      current.push(typos)
    }
    beforeLast = last
    last = current
  }
  return last[to.length]!
}
