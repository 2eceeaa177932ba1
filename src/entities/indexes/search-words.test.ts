import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { typoLetters, withTypo } from '../../../test/support/typos.ts'
import {
  countTypos,
  featuresOf,
  featuresOfSimilar,
  hasSimilarWords,
  maxTypos,
  minSharedTrigrams,
  pairAcross,
  searchedWordsOf,
  wordsOf,
} from './search-words.ts'

describe('the words of a text', () => {
  it.each([
    ['Ada Lovelace', ['ada', 'lovelace']],
    ['  José   ÁLVAREZ-Núñez ', ['jose', 'alvarez', 'nunez']],
    ["O'Neill, D’Arcy", ['oneill', 'darcy']],
    ['Łukasz Øster Straße Æsir İnci ışık', ['lukasz', 'oster', 'strasse', 'aesir', 'inci', 'isik']],
    ['ada.lovelace+news@example.com', ['ada', 'lovelace', 'news', 'example', 'com']],
    ['CRM-00123', ['crm', '00123']],
    ['ﬁne ＡＢＣ １２', ['fine', 'abc', '12']],
    ['\u0301\u0301 — …', []],
    ['Wil\u00adhelm\u00ad\u200bina Ev\u200be\u200clyn\u200d \ufeffA\u2060da', ['wilhelmina', 'evelyn', 'ada']],
  ])('are folded runs of letters and digits: %s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  it('are cut to 64 characters, between characters', () => {
    expect(wordsOf('a'.repeat(100))).toEqual(['a'.repeat(64)])
    expect(wordsOf('𝒷𐐨'.repeat(50))).toEqual(['b𐐨'.repeat(32)])
  })

  it('are the same for ASCII alone and beside other letters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', maxLength: 40 }), text => {
        expect([...wordsOf(text), 'e']).toEqual(wordsOf(`${text} é`))
      }),
    )
  })

  it('are words of themselves, and the same in every case and composition of the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), text => {
        const words = wordsOf(text)
        expect(words.flatMap(word => searchedWordsOf(word))).toEqual(words)
        expect(wordsOf(text.normalize('NFD'))).toEqual(wordsOf(text.normalize('NFC')))
        for (const word of words) expect(word).toMatch(/^[\p{L}\p{N}]{1,64}$/u)
      }),
    )
  })
})

describe('the words of a script without spaces', () => {
  it.each([
    ['王小明', ['王小', '小明', '明']],
    ['山田 太郎', ['山田', '田', '太郎', '郎']],
    ['スーパー・佐々木', ['スー', 'ーハ', 'ハー', 'ー', '佐々', '々木', '木']],
    ['สมชาย', ['สม', 'มช', 'ชา', 'าย', 'ย']],
    ['김민수', ['김민', '민수', '수'].map(pair => pair.normalize('NFD'))],
    ['東京2020 A子', ['東京', '京', '2020', 'a', '子']],
    ['𠀀𠀁', ['𠀀𠀁', '𠀁']],
  ])('are its pairs of characters and its last character: %s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  const unspaced = fc.string({
    unit: fc.constantFrom(...'王小明山田太郎々ジョンー김민수สมชาย𠀀'),
    minLength: 1,
    maxLength: 30,
  })

  it('have those of each part of the text, also of one character, and of a text without every second pair', () => {
    fc.assert(
      fc.property(unspaced, unspaced, unspaced, (before, part, after) => {
        const words = wordsOf(`${before}${part}${after}`)
        const isFound = (searched: string) => words.some(word => word.startsWith(searched))
        expect(searchedWordsOf(part).every(isFound)).toBe(true)
        const sparse = searchedWordsOf(part, { isSparse: true })
        expect(sparse.every(isFound)).toBe(true)
        expect(new Set(sparse.join('').normalize('NFC'))).toEqual(
          new Set(searchedWordsOf(part).join('').normalize('NFC')),
        )
      }),
    )
  })

  it('have the pair between a first and a last name, and none beside another script', () => {
    fc.assert(
      fc.property(unspaced, unspaced, (last, first) => {
        const words = [...wordsOf(last), ...wordsOf(first), ...pairAcross(last, first)]
        for (const searched of searchedWordsOf(`${last}${first}`)) expect(words).toContain(searched)
      }),
    )
    expect([pairAcross('Ann', '太郎'), pairAcross('山田', ''), pairAcross('山田', 'Ann')]).toEqual([[], [], []])
  })
})

const word = fc.string({ unit: fc.constantFrom(...typoLetters), minLength: 3, maxLength: 14 })

/** A word with one typing error. */
const mistyped = word.chain(from => withTypo(from).map(to => ({ from, to })))
const mistypedTwice = mistyped.chain(({ from, to }) => withTypo(to).map(twice => ({ from, to: twice })))

describe('the typos between two words', () => {
  it.each([
    ['ada', 'ada', 0],
    ['lovlace', 'lovelace', 1],
    ['jhon', 'john', 1],
    ['smiht', 'smyth', 2],
    ['', 'abc', 3],
  ])('count missing, wrong, added and swapped letters: %s and %s', (first, second, typos) => {
    expect(countTypos(first, second)).toBe(typos)
  })

  it('are the same in both directions, none only between equal words, and one after one typo', () => {
    fc.assert(
      fc.property(word, word, (first, second) => {
        expect(countTypos(first, second)).toBe(countTypos(second, first))
        expect(countTypos(first, second) === 0).toBe(first === second)
      }),
    )
    fc.assert(
      fc.property(mistyped, ({ from, to }) => {
        expect(countTypos(from, to)).toBeLessThanOrEqual(1)
      }),
    )
  })
})

describe('the features of a word', () => {
  const isFound = (from: string, to: string) => {
    const own = new Set(featuresOf(from))
    const { trigrams, remainders } = featuresOfSimilar(to)
    const shared = trigrams.filter(trigram => own.has(trigram)).length
    return remainders.some(each => own.has(each)) || shared >= minSharedTrigrams(to)
  }

  it('lead from a word with one typo to the word', () => {
    fc.assert(
      fc.property(mistyped, ({ from, to }) => {
        fc.pre(hasSimilarWords(to))
        expect(countTypos(from, to)).toBeLessThanOrEqual(maxTypos(to))
        expect(isFound(from, to), `${from} ${to}`).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('lead from two names with a typo in each to both, in either order', () => {
    fc.assert(
      fc.property(mistyped, mistyped, fc.boolean(), (one, other, isReversed) => {
        fc.pre(hasSimilarWords(one.to) && hasSimilarWords(other.to))
        const names = [one.from, other.from]
        const text = wordsOf((isReversed ? [other.to, one.to] : [one.to, other.to]).join(' '))
        for (const typed of text)
          expect(names.some(name => isFound(name, typed) && countTypos(name, typed) <= maxTypos(typed))).toBe(true)
        for (const name of names) expect(text.some(typed => isFound(name, typed))).toBe(true)
      }),
    )
  })

  it('lead from a word with two typos and nine letters or more to the word', () => {
    fc.assert(
      fc.property(mistypedTwice, ({ from, to }) => {
        fc.pre(to.length >= 9)
        expect(isFound(from, to), `${from} ${to}`).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('are none for a word with a digit, and for one that is too short', () => {
    for (const text of ['a', 'ab', '123456', 'crm123']) expect(featuresOf(text)).toEqual([])
  })
})
