import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { meaningOf, serviceSentences, translated } from '../src/app/service-sentences.ts'
import { receiptSentences, translatedReceipt } from '../src/consents/receipt-sentences.ts'
import { placeSentences } from '../src/erasures/place-sentences.ts'
import { doctorSentences, translatedFinding } from '../src/operations/doctor-sentences.ts'
import { fileSentences } from '../src/transfer/file-sentences.ts'

it.each([
  ['service', serviceSentences, 'src/**/*.ts'],
  ['erasure', placeSentences, 'src/rights/erasure/*.ts'],
  ['doctor', doctorSentences, 'src/{operations,db}/**/*.ts'],
  ['client of a receipt', receiptSentences, 'client/src/*.ts'],
  ['reader of a file', fileSentences, 'transfer/*.ts'],
])('each translated sentence of the %s is one that it says, and keeps its values', (_, sentences, pattern) => {
  const files = globSync(pattern, { cwd: `${import.meta.dirname}/../..`, exclude: ['**/*.test.ts'] })
  const source = files.map(file => readFileSync(`${import.meta.dirname}/../../${file}`, 'utf8')).join('\n')
  // A count has its unit from another function, such as "255 characters".
  const parts = (sentence: string) => sentence.replace(/# (characters|elements)$|\d element$/, '#').split('#')
  const said = (sentence: string) => parts(sentence).every(part => source.includes(part.replace(/^ s\.$/, ' s.')))
  expect(Object.keys(sentences).filter(sentence => !said(sentence))).toEqual([])
  const values = (text: string) => text.split('#').length
  for (const [sentence, translations] of Object.entries(sentences))
    for (const text of translations) expect([text, values(text) <= values(sentence)]).toEqual([text, true])
})

it('the doctor says nothing that has no translation', () => {
  const files = globSync('src/operations/doctor/{checks,database,indexes,machine,master-key}.ts', {
    cwd: `${import.meta.dirname}/../..`,
  })
  const source = files.map(file => readFileSync(`${import.meta.dirname}/../../${file}`, 'utf8')).join('\n')
  const texts = source.matchAll(/(['`])((?:(?!\1)[^\n]){12,}?)\1/g).map(([, , text]) => text!)
  // Templates within templates are left out, and the texts that are none for people have no three words.
  const said = [...texts].filter(
    text => !/\$\{[^}]*[?`(]|\$\{(name|message)\}|^\}/.test(text) && /\w \w+ \w/.test(text),
  )
  expect(said.length).toBeGreaterThan(50)
  const valued = said.map(text => text.replaceAll(/\$\{[^}]*\}/g, '7'))
  expect(valued.filter(text => translatedFinding('de', text) === undefined)).toEqual([])
})

it('what kept a webhook from its receiver has a translation, and so do the refusals of its headers', () => {
  const source = ['send', 'deliver', 'request-headers']
    .map(name => readFileSync(`${import.meta.dirname}/../../src/webhooks/${name}.ts`, 'utf8'))
    .join('\n')
  const said = [...source.matchAll(/(['`])((?:The|is|must) [^\n]+?)\1/g)].map(([, , text]) => text!)
  expect(said.length).toBeGreaterThan(12)
  const valued = said.map(text => text.replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, '7'))
  expect(valued.filter(text => translated('de', text) === undefined)).toEqual([])
})

it('a sentence keeps its values in the other languages, and an unlisted one is left to its code', () => {
  expect(translated('de', 'must be at most 255 characters')).toBe('darf höchstens 255 Zeichen haben')
  expect(translated('it', 'must be one of: gold, silver')).toBe('deve essere uno di questi valori: gold, silver')
  expect(translated('en', 'must be at most 255 characters')).toBe('must be at most 255 characters')
  expect(translated('de', 'The moon is in the way.')).toBeUndefined()
  const unknown = 'unknown key: did you mean "first_name"?'
  expect(translated('de', unknown)).toBe('diesen Schlüssel gibt es hier nicht. Meinten Sie "first_name"?')
  expect(translated('it', unknown)).toBe('questa chiave qui non esiste. Intendevi "first_name"?')
  expect(translated('en', unknown)).toBe(unknown)
  expect(translated('de', 'is on the moon: did you mean "earth"?')).toBeUndefined()
  expect(meaningOf('de', 'not_found')).toBe('Das gibt es nicht, oder nicht mehr.')
  const connections = 'a process of the service needs 17 connections, and 90 are available: enough for 5 workers'
  expect(translatedFinding('de', connections)).toBe(
    'Ein Prozess des Dienstes braucht 17 Verbindungen, und 90 sind frei: genug für 5 Prozesse',
  )
  expect(
    translatedReceipt(
      'it',
      'An object of the receipt has the member "state" twice. Programs differ in which of the two they read.',
    ),
  ).toBe('Un oggetto (la ricevuta) contiene "state" due volte. I programmi leggono a volte l’uno, a volte l’altro.')
})
