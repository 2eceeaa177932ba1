import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { padded } from '../../test/hostile/texts.ts'
import { formats as texts } from '../../test/hostile/values.ts'
import { readIfMatch } from '../route/entity-tag.ts'
import { formats, isExternalId } from '../values/formats.ts'
import { trim } from '../values/white-space.ts'
import { ifMatchPattern, pathExternalId, patterns } from './patterns.ts'

const samples: Record<string, { accepted: string[]; rejected: string[] }> = {
  'external-id': {
    accepted: ['a', ' a b ', '…', '...', 'a/b', '\u{1f600}'],
    rejected: ['', '  ', '.', ' .. ', 'a\u0007b', '\u0000'],
  },
  'entity-id': {
    accepted: ['01936f3e0a5c7c3e9d0a5b6f', ' 01936F3E-0a5c-7c3e-9d0a-5b6f3c1d2e4f '],
    rejected: ['', '01936f3e-0a5c-7c3e-9d0a', '01936f3e0a5c7c3e9d0a5b6f3c1d2e4f', 'g'.repeat(24)],
  },
  'object-id': {
    accepted: ['01936f3e0a5c7c3e9d0a5b6f', '01936F3E0A5C7C3E9D0A5B6F'],
    rejected: ['', '01936f3e', 'g'.repeat(24)],
  },
  'collection-time': {
    accepted: [
      '1990-01-01T00:00:00Z',
      '2020-02-29t23:59:59.123000z',
      '2020-01-01T00:00:00.5+05:30',
      '2020-01-01T00:00:00.123456789Z',
      '1989-12-31T23:59:59-01:00',
    ],
    rejected: ['', '2020-01-01', '2020-01-01T00:00:00', '1988-01-01T00:00:00Z', '2020-01-01T00:00:00.Z'],
  },
  'ip-address': {
    accepted: ['192.0.2.7', '2001:DB8::7', '::', '::ffff:192.0.2.7'],
    rejected: ['', 'x', '1.2.3', 'fe80::1%eth0', '192.0.2.0/24', 'example.org'],
  },
  'time-zone': {
    accepted: ['UTC', 'Europe/Rome', ' America/Argentina/Buenos_Aires ', 'Etc/GMT+3'],
    rejected: ['', 'Rome', '+01:00', 'CET', 'Europe/', '/Rome', 'Europe Rome'],
  },
  language: {
    accepted: [
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
    rejected: ['', 'e', 'english language', 'en-', '12', 'toolongtobe', 'i-nothing', 'en--US'],
  },
  'date-of-birth': {
    accepted: ['1850-01-01', '1999-12-31', '2000-02-29'],
    rejected: ['', '1849-12-31', '2000-1-1', '2000-13-01', '2000-04-31', '2000-02-30', '1850-01-01T00:00:00Z'],
  },
}

describe('a pattern of the document', () => {
  it('exists for every format of kith', () => {
    const standard = ['date', 'date-time', 'email', 'uuid']
    expect(Object.keys(patterns).sort()).toEqual(
      Object.keys(formats)
        .filter(name => !standard.includes(name))
        .sort(),
    )
  })

  it.each(Object.entries(samples))(
    'accepts and rejects the same texts as the service: %s',
    (name, { accepted, rejected }) => {
      const pattern = new RegExp(patterns[name]!, 'u')
      const { holds } = formats[name]!
      for (const text of accepted) expect([text, pattern.test(text), holds(trim(text))]).toEqual([text, true, true])
      for (const text of rejected) expect([text, pattern.test(text), holds(trim(text))]).toEqual([text, false, false])
    },
  )

  it.each(Object.keys(patterns))('accepts every text that the service accepts: %s', name => {
    const pattern = new RegExp(patterns[name]!, 'u')
    const { holds } = formats[name]!
    const text = fc.oneof(texts[name]!, padded(texts[name]!), fc.string({ unit: 'binary', maxLength: 8 }))
    fc.assert(fc.property(text, each => pattern.test(each) || !holds(trim(each))))
  })

  it('of an external identifier in a path accepts exactly the texts that the service accepts', () => {
    const pattern = new RegExp(pathExternalId, 'u')
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.constantFrom('.', '..', '', ' ', 'x'.repeat(256)),
    )
    fc.assert(fc.property(text, each => pattern.test(each) === isExternalId(each)))
  })

  it('of If-Match accepts exactly the values that the service accepts', () => {
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
