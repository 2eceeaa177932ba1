import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import {
  formats,
  isDate,
  isDateOfBirth,
  isDateTime,
  isEmail,
  isExternalId,
  isLanguage,
  isObjectId,
  isUuid,
} from './formats.ts'

const words = (list: string) => list.split(' ')
const expectAccepted = (holds: (text: string) => boolean, ...texts: string[]) =>
  expect(texts.filter(text => !holds(text))).toEqual([])
const expectRefused = (holds: (text: string) => boolean, ...texts: string[]) => expect(texts.filter(holds)).toEqual([])

it('accepts as a date a calendar day from year 1 on', () => {
  expectAccepted(isDate, ...words('2024-02-29 2000-02-29 0001-01-01 9999-12-31'))
  expectRefused(isDate, ...words('2023-02-29 1900-02-29 2024-04-31 2024-00-10 2024-13-01 2024-01-00 0000-01-01'))
  expectRefused(isDate, ...words('2024-1-01 24-01-01 2024-01-01T00:00:00Z ２０２４-01-01 +02024-01-01'))
  expectRefused(isDate, '', '2024-01-01\n', ' 2024-01-01')
  const date = fc.tuple(
    fc.integer({ min: 1, max: 9999 }),
    fc.integer({ min: 0, max: 14 }),
    fc.integer({ min: 0, max: 33 }),
  )
  fc.assert(
    fc.property(date, ([year, month, day]) => {
      const text = [String(year).padStart(4, '0'), String(month).padStart(2, '0'), String(day).padStart(2, '0')].join(
        '-',
      )
      const calendar = new Date(`${text}T00:00:00Z`)
      expect(isDate(text)).toBe(!Number.isNaN(calendar.getTime()) && calendar.toISOString().startsWith(text))
    }),
    { numRuns: 1000 },
  )
})

it('accepts as a date of birth a date from 1850 to today anywhere on earth', () => {
  // On Kiritimati, in UTC+14, the 29th of February has just begun.
  vi.useFakeTimers({ now: Date.parse('2024-02-28T10:00:00Z') })
  expectAccepted(isDateOfBirth, ...words('1850-01-01 2024-02-29 1999-12-31'))
  expectRefused(isDateOfBirth, ...words('1849-12-31 2024-03-01 9999-01-01 2023-02-29'))
  expectRefused(isDateOfBirth, '')
  vi.setSystemTime(Date.parse('2024-02-28T09:59:59.999Z'))
  expectRefused(isDateOfBirth, ...words('2024-02-29'))
  vi.useRealTimers()
})

it('accepts as a date and time one with an offset and without a leap second', () => {
  expectAccepted(isDateTime, ...words('2024-02-29T23:59:59Z 2024-01-01t00:00:00.123456789z 2024-01-01T00:00:00+05:30'))
  expectAccepted(isDateTime, ...words('2024-01-01T00:00:00-00:00'))
  expectRefused(
    isDateTime,
    ...words('2023-02-29T00:00:00Z 2024-01-01T24:00:00Z 2024-01-01T00:60:00Z 2016-12-31T23:59:60Z'),
  )
  expectRefused(isDateTime, ...words('2024-01-01 2024-01-01T00:00:00 2024-01-01T00:00:00+0530 2024-01-01T00:00Z'))
  expectRefused(isDateTime, '2024-01-01 00:00:00Z', '2024-01-01T00:00:00.1234567890Z')
  expectRefused(isDateTime, ...words('2024-01-01T00:00:00.Z 2024-01-01T00:00:00+24:00 2024-01-01T00:00:00+05:60'))
  expectRefused(isDateTime, '2024-01-01T00:00:00Z\n')
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') }), date =>
      isDateTime(date.toISOString()),
    ),
  )
})

it('accepts as an external identifier 1 to 255 characters, without control characters, and no relative path', () => {
  expectAccepted(isExternalId, ...words('a ... constructor'))
  expectAccepted(isExternalId, 'a/b c%2F', '😀'.repeat(255), 'x'.repeat(255), '\u200b')
  expectRefused(isExternalId, ...words('. ..'))
  expectRefused(isExternalId, '', 'x'.repeat(256), '😀'.repeat(256), 'a\n', '\0', '\u007f', '\u0085')
})

it('accepts as an email address a local part and a domain of labels, in any script', () => {
  expectAccepted(isEmail, ...words('a@b.co ada.lovelace+tag@example.co.uk user_name%x@sub.example-host.org 1@2.com'))
  expectAccepted(isEmail, "o'brien@example.com")
  expectAccepted(
    isEmail,
    ...words('josé@exämple.com 用户@例子.中国 ada@xn--exmple-cua.com δοκιμή@παράδειγμα.δοκιμή a@example.c1'),
  )
  expectAccepted(isEmail, `${'a'.repeat(64)}@${'b'.repeat(63)}.com`)
  expectRefused(isEmail, ...words('a @ a@ @b.co a@b a@@b.co a@b@c.co a@b..co a@.b.co a@b.co.'))
  expectRefused(isEmail, '', 'a b@c.co', 'a@b c.co')
  expectRefused(isEmail, ...words('.a@b.co a.@b.co a..b@c.co a@-b.co a@b-.co a@b_c.co a@1.2.3.4 a@[1.2.3.4]'))
  expectRefused(isEmail, '"a b"@c.co')
  expectRefused(isEmail, ...words('a@b.co,c@d.co mailto:a@b.co'))
  expectRefused(isEmail, 'Ada <a@b.co>', 'a@b.co\n', 'a\0@b.co', 'a\u200b@b.co', 'a\u3000@b.co')
  expectRefused(isEmail, 'a@b\u202e.co')
  expectRefused(isEmail, `${'a'.repeat(65)}@b.co`, `a@${'b'.repeat(64)}.com`, `a@${'b.'.repeat(130)}com`)
  expectRefused(isEmail, `${'é'.repeat(33)}@b.co`)
})

it('accepts as a language a well-formed tag of BCP 47', () => {
  expectAccepted(
    isLanguage,
    ...words('it EN pt-BR pt_br zh-Hant-TW es-419 sl-rozaj-biske-1994 de-CH-1901 de-Latn-1996 ast'),
  )
  expectAccepted(
    isLanguage,
    ...words('zh-cmn-Hans-CN zh-yue sgn-ase hy-Latn-IT-arevela abcd abcdefgh x-whatever x-a-b'),
  )
  expectAccepted(
    isLanguage,
    ...words('de-DE-u-co-phonebk en-a-bbb-b-ccc en-US-x-twain en-x-a-a qaa-Qaaa-QM-x-southern'),
  )
  expectAccepted(isLanguage, ...words('de-1996-x-1996-1996'))
  expectAccepted(
    isLanguage,
    ...words('i-klingon I-Navajo en-GB-oed sgn-BE-FR art-lojban zh-min-nan cel-gaulish en_gb_oed'),
  )
  expectRefused(isLanguage, ...words('a i x it- -it it--IT abcdefghi en-toolongsubtag it-IT-FR en-Latn-Latn de-419-DE'))
  expectRefused(isLanguage, '')
  expectRefused(
    isLanguage,
    ...words('i-unknown en-u en-x en-u-a x- x-toolongpart italiano! ıt a-DE ar-a-aaa-b-bbb-a-ccc'),
  )
  expectRefused(isLanguage, 'it IT', 'it\n', '\u212ak')
  expectRefused(isLanguage, ...words('de-1901-1901 de-DE-rozaj-ROZAJ en-u-co-phonebk-U-nu-latn zh-yue-cmn-hak-nan'))
})

it('accepts every language tag in the canonical form of Intl', () => {
  const tags = fc.constantFrom(
    'en-US',
    'zh-Hant-TW',
    'de-u-co-phonebk',
    'sr-Latn-RS',
    'ca-valencia',
    'en-t-jp',
    'hi-u-nu-deva-x-y',
    'und-419',
  )
  fc.assert(fc.property(tags, tag => isLanguage(Intl.getCanonicalLocales(tag)[0]!)))
})

it('accepts a hyphenated UUID and an ObjectId of 24 digits, in either case', () => {
  expectAccepted(isUuid, ...words('01890a5d-ac96-774b-bcce-b302099a8057 01890A5D-AC96-774B-BCCE-B302099A8057'))
  expectAccepted(isUuid, ...words('00000000-0000-0000-0000-000000000000'))
  expectRefused(isUuid, ...words('01890a5dac96774bbcceb302099a8057 {01890a5d-ac96-774b-bcce-b302099a8057}'))
  expectRefused(isUuid, ...words('urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057'))
  expectRefused(isUuid, '')
  expectRefused(isUuid, ...words('01890a5d-ac96-774b-bcce-b302099a805 01890a5g-ac96-774b-bcce-b302099a8057'))
  expectRefused(isUuid, '01890a5d-ac96-774b-bcce-b302099a8057\n')
  expectAccepted(isObjectId, ...words('507f1f77bcf86cd799439011 507F1F77BCF86CD799439011'))
  expectRefused(isObjectId, ...words('507f1f77bcf86cd79943901 507f1f77bcf86cd799439011a 507f1f77bcf86cd79943901g'))
  expectRefused(isObjectId, '', '507f1f77bcf86cd799439011\n')
})

it('decides quickly on texts of 64 KiB that almost match', () => {
  const length = 65_536
  for (const { holds } of Object.values(formats)) {
    for (const piece of ['a', 'a.', 'a-', '-a1', 'ab-', '0', '😀', ' ', 'a@', '-x-a', '-u-ab'])
      expect(holds(`en${piece.repeat(length / piece.length)}!\n`)).toBe(false)
    expect(holds(`${'a.'.repeat(length)}@${'b.'.repeat(length)}`)).toBe(false)
    expect(holds(`2024-01-01T00:00:00.${'0'.repeat(length)}`)).toBe(false)
  }
})
