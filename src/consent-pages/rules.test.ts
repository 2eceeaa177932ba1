import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ConsentLink,
  isSignedBy,
  type LinkKind,
  linkKinds,
  parseLink,
  sealForm,
  signLink,
  unsealForm,
} from '../consent-links/token.ts'
import { html } from '../values/html.ts'
import { choosePageLanguage, chooseText } from './languages.ts'
import { contrastOf, textColorOn } from './layout.ts'
import { words } from './words.ts'

const kinds = Object.keys(linkKinds) as LinkKind[]
const link: fc.Arbitrary<ConsentLink> = fc.record({
  kind: fc.constantFrom(...kinds),
  organization_id: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  person_id: fc.uuid(),
  consent_type_id: fc.option(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
  channel: fc.constantFrom('email', 'sms', null),
  expiresAt: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
})
const key = fc.record({
  id: fc.integer({ min: 1, max: 65_535 }),
  secret: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(Buffer.from),
})

describe('the token of a link', () => {
  it('is parsed to the link that was signed, and is 64 characters of a path', () => {
    fc.assert(
      fc.property(link, key, (signed, signingKey) => {
        const token = signLink(signed, signingKey)
        expect(token).toMatch(/^[\w-]{64}$/)
        expect(parseLink(token)).toEqual({ ...signed, keyId: signingKey.id })
        expect(isSignedBy(token, signingKey)).toBe(true)
        expect(isSignedBy(token, { ...signingKey, secret: randomBytes(32) })).toBe(false)
      }),
    )
  })

  it('has the numbers of kinds and channels that links in sent messages have', () => {
    const sent = {
      organization_id: 1,
      person_id: '00000000-0000-7000-8000-000000000001',
      consent_type_id: 2,
      expiresAt: 3,
    }
    const signingKey = { id: 1, secret: Buffer.alloc(32) }
    const numbersOf = (kind: LinkKind, channel: ConsentLink['channel']) => {
      const bytes = Buffer.from(signLink({ ...sent, kind, channel }, signingKey), 'base64url')
      return [bytes[0]! % 16, bytes[27]]
    }
    expect(numbersOf('preferences', 'email')).toEqual([0, 1])
    expect(numbersOf('unsubscribe', 'sms')).toEqual([1, 2])
    expect(numbersOf('confirm', null)).toEqual([2, 0])
  })

  it('names only numbers that a column can hold, whatever its bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 48, maxLength: 48 }), fc.constantFrom(...kinds), (bytes, kind) => {
        bytes[0] = 16 + linkKinds[kind]
        const parsed = parseLink(Buffer.from(bytes).toString('base64url'))
        if (!parsed) return
        expect(Math.max(parsed.organization_id, parsed.consent_type_id ?? 0)).toBeLessThan(2 ** 31)
      }),
    )
  })

  it('is not signed if any of its bits differs', () => {
    fc.assert(
      fc.property(link, key, fc.nat({ max: 48 * 8 - 1 }), (signed, signingKey, bit) => {
        const bytes = Buffer.from(signLink(signed, signingKey), 'base64url')
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        expect(isSignedBy(bytes.toString('base64url'), signingKey)).toBe(false)
      }),
    )
  })

  it('is refused for any other text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String({ minLength: 64, maxLength: 64 })), text => {
        const parsed = parseLink(text)
        if (parsed) expect(isSignedBy(text, { id: 1, secret: randomBytes(32) })).toBe(false)
      }),
    )
  })
})

describe('a sealed form', () => {
  const token = 'a'.repeat(64)
  const ours = { id: 1, secret: randomBytes(32) }

  it('is read back for its own link only, with its own key only', () => {
    fc.assert(
      fc.property(fc.jsonValue(), shown => {
        const sealed = sealForm(shown, token, ours)
        expect(unsealForm(sealed, token, ours)).toEqual(JSON.parse(JSON.stringify(shown)))
        expect(unsealForm(sealed, 'b'.repeat(64), ours)).toBeUndefined()
        expect(unsealForm(sealed, token, { id: 1, secret: randomBytes(32) })).toBeUndefined()
      }),
    )
  })

  it('is never a text that nobody sealed', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        expect(unsealForm(text, token, ours)).toBeUndefined()
      }),
    )
    const [content, signature] = sealForm([1], token, ours).split('.')
    for (const text of [`${content}.`, `.${signature}`, `${content}.${signature}=`, `${content}A.${signature}`])
      expect(unsealForm(text, token, ours)).toBeUndefined()
  })
})

describe('a template of HTML', () => {
  it('shows every value as text, in elements and in attributes', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('<', '>', '"', "'", '&', 'a', ' ', '=') }), value => {
        const { text } = html`<p title="${value}">${value}</p>`
        const inner = text.slice('<p title="'.length, -'</p>'.length)
        expect(inner.replace('">', '')).not.toMatch(/[<>"']|&(?!amp;|lt;|gt;|quot;|#39;)/)
      }),
    )
  })

  it('keeps HTML, joins arrays, and shows nothing for null, undefined and false', () => {
    const inner = html`<b>${'<'}</b>`
    expect(html`${[inner, 1, [null]]}${undefined}${false}${''}`.text).toBe('<b>&lt;</b>1')
  })
})

it('the text on every accent color has the contrast of AA', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffff }), value => {
      const color = `#${value.toString(16).padStart(6, '0')}`
      expect(contrastOf(color, textColorOn(color))).toBeGreaterThanOrEqual(4.5)
    }),
    { numRuns: 1_000 },
  )
  expect(contrastOf('#000000', '#FFFFFF')).toBeCloseTo(21)
  expect(contrastOf('#777777', '#ffffff')).toBeCloseTo(4.48, 2)
  expect([textColorOn('#ffe14d'), textColorOn('#0b6e4f')]).toEqual(['#000000', '#ffffff'])
})

describe('languages', () => {
  it.each([
    ['de_CH', 'fr', 'it', 'de'],
    ['pl', 'fr-CH, en;q=0.8', 'it', 'fr'],
    [null, 'en;q=0.2, es;q=0.2, pl', 'it', 'en'],
    [null, 'de;q=0, *;q=0.5', 'it', 'it'],
    [null, 'de;q=x, fr;q=2', null, 'en'],
    [null, undefined, null, 'en'],
  ] as const)(
    'of a person with %s, a browser with %s and an organization with %s choose %s',
    (person, accepted, organization, expected) => {
      expect(choosePageLanguage(person, accepted, organization)).toBe(expected)
    },
  )

  it('choose the newest text in the best of the languages', () => {
    const texts = ['en', 'de-AT', 'de', 'fr'].map((language, version) => ({ language, version }))
    expect(chooseText(texts, ['de', 'en'])?.version).toBe(2)
    expect(chooseText(texts, ['DE_at'])?.version).toBe(1)
    expect(chooseText(texts, ['de-CH'])?.version).toBe(1)
    expect(chooseText(texts, [null, 'it', 'fr'])?.version).toBe(3)
    expect(chooseText(texts, ['it'])?.version).toBe(0)
    expect(chooseText([], ['en'])).toBeUndefined()
  })

  it('have every word, none of them empty', () => {
    for (const { channels, by, moreAbout, ...texts } of Object.values(words)) {
      expect(Object.keys(texts)).toEqual(
        Object.keys(words.en).filter(name => !['channels', 'by', 'moreAbout'].includes(name)),
      )
      for (const text of [...Object.values(texts), ...Object.values(channels)]) expect(text).toMatch(/\S/)
      for (const sentence of [by('News', channels.email), by('News', channels.sms), moreAbout('News')])
        expect(sentence).toContain('News')
    }
  })
})
