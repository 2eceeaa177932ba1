/** The maximum length of a word, in documents and in requests. kith cuts off the rest. */
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

// Marks, apostrophes, and characters that are not seen, such as the soft hyphens, zero-width characters and marks of direction of copied
// texts.
const insideWords = /[\p{M}'’ʼ`´\p{Default_Ignorable_Code_Point}]/gu

/** The text without differences of case, accents and Unicode compatibility, and without apostrophes, so that O'Neill is one word. */
export const foldText = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(insideWords, '')
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(undecomposed, letter => plainLetters[letter]!)

/** The words of a text, folded: its runs of letters and digits, in order. */
export function wordsOf(text: string): string[] {
  const words = foldText(text).match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map(word => (word.length <= maxWordCharacters ? word : cutWord(word)))
}

const cutWord = (word: string) => [...word.slice(0, 2 * maxWordCharacters)].slice(0, maxWordCharacters).join('')

/** The longest word that is also found by what remains without one letter. One wrong letter changes most of its trigrams. */
const maxShortLetters = 6
/** The shortest word that has trigrams. A word with one letter less is short. */
const minTrigramLetters = 6

/** Whether other words can be similar to the word. A number that differs in a digit is another number. */
export const hasSimilarWords = (word: string): boolean => /^\p{L}{3,}$/u.test(word)

/** The remainders of a short word without one letter, and the word itself, each after a hyphen. */
function remaindersOf(letters: readonly string[]): string[] {
  if (letters.length > maxShortLetters) return []
  return [letters, ...letters.map((_, index) => letters.toSpliced(index, 1))].map(rest => `-${rest.join('')}`)
}

/** The features of a word, which similar words share: its trigrams with the length of the word and their position, and its remainders. */
export function featuresOf(word: string): string[] {
  if (!hasSimilarWords(word)) return []
  const letters = [...word]
  const trigrams = trigramsOf(letters).map((trigram, position) => placedTrigram(trigram, letters.length, position))
  return [...new Set([...trigrams, ...remaindersOf(letters)])]
}

/** The features that words have which may be similar to this one: their lengths and positions differ by no more than the typos. */
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

/** A typo changes three trigrams of a word, and two swapped letters change four. Two typos change eight. */
const maxChangedTrigrams = 8

/**
 * The number of trigrams that a similar word shares. A word has as many as letters, so from nine letters on two typos always leave one.
 * Of the words with two typos, a word of six letters shares none with 9 of 100, one of seven with 2, one of eight with 0.1.
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
 * The number of typing errors between two words: letters that are missing, too many, wrong, or swapped with the next one (the
 * optimal string alignment distance).
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
