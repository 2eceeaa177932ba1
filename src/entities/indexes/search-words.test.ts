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
    ['山田 太郎', ['山田', '太郎']],
    ['\u0301\u0301 — …', []],
    ['Wil\u00adhelm\u00ad\u200bina Ev\u200be\u200clyn\u200d \ufeffA\u2060da', ['wilhelmina', 'evelyn', 'ada']],
  ])('are folded runs of letters and digits: %s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  it('are cut to 64 characters, between characters', () => {
    expect(wordsOf('a'.repeat(100))).toEqual(['a'.repeat(64)])
    expect(wordsOf('𠀀'.repeat(100))).toEqual(['𠀀'.repeat(64)])
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
        expect(words.flatMap(word => wordsOf(word))).toEqual(words)
        expect(wordsOf(text.normalize('NFD'))).toEqual(wordsOf(text.normalize('NFC')))
        for (const word of words) expect(word).toMatch(/^[\p{L}\p{N}]{1,64}$/u)
      }),
    )
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
