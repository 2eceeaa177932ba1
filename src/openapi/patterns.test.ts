import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { padded } from '../../test/hostile/texts.ts'
import { formats as texts } from '../../test/hostile/values.ts'
import { readIfMatch } from '../entity-tag.ts'
import { formats, isExternalId } from '../formats.ts'
import { trim } from '../white-space.ts'
import { ifMatchPattern, pathExternalId, patterns } from './patterns.ts'

const known: Record<string, { taken: string[]; refused: string[] }> = {
  'external-id': {
    taken: ['a', ' a b ', '…', '...', 'a/b', '\u{1f600}'],
    refused: ['', '  ', '.', ' .. ', 'a\u0007b', '\u0000'],
  },
  'object-id': {
    taken: ['01936f3e0a5c7c3e9d0a5b6f', '01936F3E0A5C7C3E9D0A5B6F'],
    refused: ['', '01936f3e', 'g'.repeat(24)],
  },
  language: {
    taken: [
      'en',
      'pt_BR',
      'zh-Hant-TW',
      'sl-rozaj-biske',
      'de-CH-1996',
      'en-a-myext',
      'x-whatever',
      'i-klingon',
      'sgn-BE-FR',
      'en-GB-oed',
    ],
    refused: ['', 'e', 'english language', 'en-', '12', 'toolongtobe', 'i-nothing', 'en--US'],
  },
  'date-of-birth': {
    taken: ['1850-01-01', '1999-12-31', '2000-02-29'],
    refused: ['', '1849-12-31', '2000-1-1', '2000-13-01', '2000-04-31', '2000-02-30', '1850-01-01T00:00:00Z'],
  },
}

describe('a pattern of the document', () => {
  test('is there for every format of our own', () => {
    const standard = ['date', 'date-time', 'email', 'uuid']
    expect(Object.keys(patterns).sort()).toEqual(
      Object.keys(formats)
        .filter(name => !standard.includes(name))
        .sort(),
    )
  })

  test.each(Object.entries(known))('takes and refuses what the service does: %s', (name, { taken, refused }) => {
    const pattern = new RegExp(patterns[name]!, 'u')
    const { holds } = formats[name]!
    for (const text of taken) expect([text, pattern.test(text), holds(trim(text))]).toEqual([text, true, true])
    for (const text of refused) expect([text, pattern.test(text), holds(trim(text))]).toEqual([text, false, false])
  })

  test.each(Object.keys(patterns))('takes whatever the service takes: %s', name => {
    const pattern = new RegExp(patterns[name]!, 'u')
    const { holds } = formats[name]!
    const text = fc.oneof(texts[name]!, padded(texts[name]!), fc.string({ unit: 'binary', maxLength: 8 }))
    fc.assert(fc.property(text, each => pattern.test(each) || !holds(trim(each))))
  })

  test('of an external identifier in a path takes just what the service takes', () => {
    const pattern = new RegExp(pathExternalId, 'u')
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.constantFrom('.', '..', '', ' ', 'x'.repeat(256)),
    )
    fc.assert(fc.property(text, each => pattern.test(each) === isExternalId(each)))
  })

  test('of If-Match takes just what the service takes', () => {
    const pattern = new RegExp(ifMatchPattern, 'u')
    const part = fc.constantFrom('*', '"', 'W/', '"3"', '"a,b"', ',', ' ', 'x', '"é"', '\t')
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 6 }).map(parts => parts.join('')),
        text => pattern.test(text) === (readIfMatch(text) !== undefined),
      ),
    )
  })
})
