import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { meaningOf, type ServiceSentence, serviceSentences, translated } from '../src/app/service-sentences.ts'

it('each translated sentence is one that the service says', () => {
  const files = globSync('src/**/*.ts', { cwd: `${import.meta.dirname}/../..`, exclude: ['**/*.test.ts'] })
  const source = files.map(file => readFileSync(`${import.meta.dirname}/../../${file}`, 'utf8')).join('\n')
  // A count has its unit from another function, such as "255 characters".
  const parts = (sentence: string) => sentence.replace(/# (characters|elements)$|\d element$/, '#').split('#')
  const said = (sentence: string) => parts(sentence).every(part => source.includes(part.replace(/^ s\.$/, ' s.')))
  expect(Object.keys(serviceSentences.de).filter(sentence => !said(sentence))).toEqual([])
})

it('a sentence keeps its value in the other languages, and an unlisted one is left to its code', () => {
  expect(translated('de', 'must be at most 255 characters')).toBe('darf höchstens 255 Zeichen haben')
  expect(translated('it', 'must be one of: gold, silver')).toBe('deve essere uno di questi valori: gold, silver')
  expect(translated('en', 'must be at most 255 characters')).toBe('must be at most 255 characters')
  expect(translated('de', 'The moon is in the way.')).toBeUndefined()
  expect(meaningOf('de', 'not_found')).toBe('Das gibt es nicht, oder nicht mehr.')
  for (const [sentence, german] of Object.entries(serviceSentences.de))
    for (const text of [german, serviceSentences.it[sentence as ServiceSentence]])
      expect([sentence, text.includes('#') && !sentence.includes('#')]).toEqual([sentence, false])
})
