import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
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
const kept = (holds: (text: string) => boolean, ...texts: string[]) =>
  expect(texts.filter(text => !holds(text))).toEqual([])
const refused = (holds: (text: string) => boolean, ...texts: string[]) => expect(texts.filter(holds)).toEqual([])

test('A date is a day of the calendar from year 1 on', () => {
  kept(isDate, ...words('2024-02-29 2000-02-29 0001-01-01 9999-12-31'))
  refused(isDate, ...words('2023-02-29 1900-02-29 2024-04-31 2024-00-10 2024-13-01 2024-01-00 0000-01-01'))
  refused(isDate, ...words('2024-1-01 24-01-01 2024-01-01T00:00:00Z ２０２４-01-01 +02024-01-01'))
  refused(isDate, '', '2024-01-01\n', ' 2024-01-01')
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

test('A date of birth lies between 1850 and today in UTC', () => {
  vi.useFakeTimers({ now: Date.parse('2024-02-29T00:00:00Z') })
  kept(isDateOfBirth, ...words('1850-01-01 2024-02-29 1999-12-31'))
  refused(isDateOfBirth, ...words('1849-12-31 2024-03-01 9999-01-01 2023-02-29'))
  refused(isDateOfBirth, '')
  vi.setSystemTime(Date.parse('2024-02-28T23:59:59.999Z'))
  refused(isDateOfBirth, ...words('2024-02-29'))
  vi.useRealTimers()
})

test('A date and time has its offset, and no leap second', () => {
  kept(isDateTime, ...words('2024-02-29T23:59:59Z 2024-01-01t00:00:00.123456789z 2024-01-01T00:00:00+05:30'))
  kept(isDateTime, ...words('2024-01-01T00:00:00-00:00'))
  refused(isDateTime, ...words('2023-02-29T00:00:00Z 2024-01-01T24:00:00Z 2024-01-01T00:60:00Z 2016-12-31T23:59:60Z'))
  refused(isDateTime, ...words('2024-01-01 2024-01-01T00:00:00 2024-01-01T00:00:00+0530 2024-01-01T00:00Z'))
  refused(isDateTime, '2024-01-01 00:00:00Z')
  refused(isDateTime, ...words('2024-01-01T00:00:00.Z 2024-01-01T00:00:00+24:00 2024-01-01T00:00:00+05:60'))
  refused(isDateTime, '2024-01-01T00:00:00Z\n')
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') }), date =>
      isDateTime(date.toISOString()),
    ),
  )
})

test('An external identifier is 1 to 255 characters, none of them a control, and no relative path', () => {
  kept(isExternalId, ...words('a ... constructor'))
  kept(isExternalId, 'a/b c%2F', '😀'.repeat(255), 'x'.repeat(255), '\u200b')
  refused(isExternalId, ...words('. ..'))
  refused(isExternalId, '', 'x'.repeat(256), '😀'.repeat(256), 'a\n', '\0', '\u007f', '\u0085')
})

test('An email address has a local part and a domain of labels, in any script', () => {
  kept(isEmail, ...words('a@b.co ada.lovelace+tag@example.co.uk user_name%x@sub.example-host.org 1@2.com'))
  kept(isEmail, "o'brien@example.com")
  kept(
    isEmail,
    ...words('josé@exämple.com 用户@例子.中国 ada@xn--exmple-cua.com δοκιμή@παράδειγμα.δοκιμή a@example.c1'),
  )
  kept(isEmail, `${'a'.repeat(64)}@${'b'.repeat(63)}.com`)
  refused(isEmail, ...words('a @ a@ @b.co a@b a@@b.co a@b@c.co a@b..co a@.b.co a@b.co.'))
  refused(isEmail, '', 'a b@c.co', 'a@b c.co')
  refused(isEmail, ...words('.a@b.co a.@b.co a..b@c.co a@-b.co a@b-.co a@b_c.co a@1.2.3.4 a@[1.2.3.4]'))
  refused(isEmail, '"a b"@c.co')
  refused(isEmail, ...words('a@b.co,c@d.co mailto:a@b.co'))
  refused(isEmail, 'Ada <a@b.co>', 'a@b.co\n', 'a\0@b.co', 'a\u200b@b.co', 'a\u3000@b.co')
  refused(isEmail, 'a@b\u202e.co')
  refused(isEmail, `${'a'.repeat(65)}@b.co`, `a@${'b'.repeat(64)}.com`, `a@${'b.'.repeat(130)}com`)
  refused(isEmail, `${'é'.repeat(33)}@b.co`)
})

test('A language is a well-formed tag of BCP 47', () => {
  kept(isLanguage, ...words('it EN pt-BR pt_br zh-Hant-TW es-419 sl-rozaj-biske-1994 de-CH-1901 de-Latn-1996 ast'))
  kept(isLanguage, ...words('zh-cmn-Hans-CN zh-yue sgn-ase hy-Latn-IT-arevela abcd abcdefgh x-whatever x-a-b'))
  kept(isLanguage, ...words('de-DE-u-co-phonebk en-a-bbb-b-ccc en-US-x-twain en-x-a-a qaa-Qaaa-QM-x-southern'))
  kept(isLanguage, ...words('de-1996-x-1996-1996'))
  kept(isLanguage, ...words('i-klingon I-Navajo en-GB-oed sgn-BE-FR art-lojban zh-min-nan cel-gaulish en_gb_oed'))
  refused(isLanguage, ...words('a i x it- -it it--IT abcdefghi en-toolongsubtag it-IT-FR en-Latn-Latn de-419-DE'))
  refused(isLanguage, '')
  refused(isLanguage, ...words('i-unknown en-u en-x en-u-a x- x-toolongpart italiano! ıt a-DE ar-a-aaa-b-bbb-a-ccc'))
  refused(isLanguage, 'it IT', 'it\n', '\u212ak')
  refused(isLanguage, ...words('de-1901-1901 de-DE-rozaj-ROZAJ en-u-co-phonebk-U-nu-latn zh-yue-cmn-hak-nan'))
})

test('A language in the canonical form that Intl gives is well formed', () => {
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

test('A UUID is hyphenated and an ObjectId is 24 digits, in either case', () => {
  kept(isUuid, ...words('01890a5d-ac96-774b-bcce-b302099a8057 01890A5D-AC96-774B-BCCE-B302099A8057'))
  kept(isUuid, ...words('00000000-0000-0000-0000-000000000000'))
  refused(isUuid, ...words('01890a5dac96774bbcceb302099a8057 {01890a5d-ac96-774b-bcce-b302099a8057}'))
  refused(isUuid, ...words('urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057'))
  refused(isUuid, '')
  refused(isUuid, ...words('01890a5d-ac96-774b-bcce-b302099a805 01890a5g-ac96-774b-bcce-b302099a8057'))
  refused(isUuid, '01890a5d-ac96-774b-bcce-b302099a8057\n')
  kept(isObjectId, ...words('507f1f77bcf86cd799439011 507F1F77BCF86CD799439011'))
  refused(isObjectId, ...words('507f1f77bcf86cd79943901 507f1f77bcf86cd799439011a 507f1f77bcf86cd79943901g'))
  refused(isObjectId, '', '507f1f77bcf86cd799439011\n')
})

test('Texts of 64 KiB that almost fit are finished with', () => {
  const length = 65_536
  for (const { holds } of Object.values(formats)) {
    for (const piece of ['a', 'a.', 'a-', '-a1', 'ab-', '0', '😀', ' ', 'a@', '-x-a', '-u-ab'])
      expect(holds(`en${piece.repeat(length / piece.length)}!\n`)).toBe(false)
    expect(holds(`${'a.'.repeat(length)}@${'b.'.repeat(length)}`)).toBe(false)
    expect(holds(`2024-01-01T00:00:00.${'0'.repeat(length)}`)).toBe(false)
  }
})
