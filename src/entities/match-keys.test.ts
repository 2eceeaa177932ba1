import { domainToASCII, domainToUnicode } from 'node:url'
import fc from 'fast-check'
import { parsePhoneNumberFromString } from 'libphonenumber-js/min'
import { describe, expect, it } from 'vitest'
import { isEmail } from '../values/formats.ts'
import { mobileKey } from '../values/phone-numbers.ts'
import type { Profile } from './entity-row.ts'
import { changedMatchKeys, emailKey, fieldsByKey, matchKeys, nameAndBirthKey } from './match-keys.ts'

const text = fc.string({ unit: 'binary', maxLength: 255 })
const maxIndexedBytes = 2_600

describe('the key of an email', () => {
  it('ignores case and the Unicode form, and nothing else', () => {
    expect(emailKey('Ada.Lovelace+News@Example.COM')).toBe('ada.lovelace+news@example.com')
    expect(emailKey('ADÀ@example.com')).toBe(emailKey('adà@example.com'.normalize('NFD')))
    expect(emailKey('ada.lovelace@example.com')).not.toBe(emailKey('adalovelace@example.com'))
    expect(emailKey('ada+news@example.com')).not.toBe(emailKey('ada@example.com'))
    expect(emailKey('用户@例子.公司')).toBe('用户@xn--fsqu00a.xn--55qx5d')
    expect([emailKey(null), emailKey(undefined), emailKey('')]).toEqual([null, null, null])
  })

  it('is the same in upper case, in lower case and in either Unicode form, and differs for other addresses', () => {
    const local = fc.stringMatching(/^[a-z0-9.+_-]{1,30}$/)
    const address = fc.tuple(local, fc.domain()).map(([name, domain]) => `${name}@${domain}`)
    fc.assert(
      fc.property(address, address, (one, other) => {
        expect(emailKey(one.toUpperCase())).toBe(emailKey(one))
        expect(emailKey(one) === emailKey(other)).toBe(one.toLowerCase() === other.toLowerCase())
      }),
    )
    fc.assert(
      fc.property(text, any => {
        expect(emailKey(any.normalize('NFD'))).toBe(emailKey(any.normalize('NFC')))
      }),
    )
  })

  it('is the same for a domain in Unicode, in the Unicode of another system, and in ASCII', () => {
    const spellings = [
      'bücher.example',
      'BÜCHER.Example',
      'bu\u0308cher.example',
      'ｂücher.example',
      'XN--BCHER-KVA.example',
    ]
    for (const domain of spellings) expect(emailKey(`Ada@${domain}`)).toBe('ada@xn--bcher-kva.example')
    expect(emailKey('ada@strasse.example')).not.toBe(emailKey('ada@straße.example'))
    const label = fc.stringMatching(/^[a-zäöüßéèñçøåłžčαβγдж中文字日本]{1,20}$/u)
    const domains = fc.tuple(label, label).map(labels => `${labels.join('.')}.example`)
    fc.assert(
      fc.property(domains, domain => {
        const key = `ada@${domainToASCII(domain)}`
        const spellings = [
          domain,
          domain.normalize('NFD'),
          domainToASCII(domain),
          domainToUnicode(domainToASCII(domain)),
        ]
        expect(spellings.map(spelling => emailKey(`ADA@${spelling}`))).toEqual(spellings.map(() => key))
        expect(emailKey(key)).toBe(key)
      }),
    )
  })

  it('fits into an index, also for the longest address of each script', () => {
    const units = ['a', 'é', 'e\u0301', '用', '\ufb2c', '😀', 'İ', '\u{1d160}']
    for (const unit of units)
      for (const address of [`${unit.repeat(80)}@${'b'.repeat(60)}.com`, unit.repeat(254)])
        expect(Buffer.byteLength(emailKey(address)!)).toBeLessThan(maxIndexedBytes)
    const longest = `${'a'.repeat(64)}@${`${'b'.repeat(61)}.`.repeat(3)}com`.padEnd(254, 'm')
    expect([longest.length, isEmail(longest), emailKey(longest)]).toEqual([254, true, longest])
    fc.assert(fc.property(text, any => Buffer.byteLength(emailKey(any) ?? '') < maxIndexedBytes))
  })
})

describe('the key of a phone number', () => {
  it.each([
    ['+39', '333 1234567', '+393331234567'],
    ['39', '(333) 123-4567', '+393331234567'],
    ['0039', '3331234567', '+393331234567'],
    [null, '+39 333 1234567', '+393331234567'],
    [null, '0039 333 1234567', '+393331234567'],
    ['49', '+39 333 1234567', '+393331234567'],
    ['39', '39 333 1234567', '+393331234567'],
    ['43', '0664 1234567', '+436641234567'],
    ['43', '+43 (0) 664 1234567', '+436641234567'],
    ['49', '0049 0151 23456789', '+4915123456789'],
    ['39', '06 12345678', '+390612345678'],
    ['7', '8 912 345-67-89', '+79123456789'],
    ['1', '(242) 300-1234', '+12423001234'],
    ['1242', '300 1234', '+12423001234'],
    ['49', '１５１２３４５６７８９', '+4915123456789'],
    ['800', '12345678', '+80012345678'],
  ])('is E.164: prefix %j and number %j give %s', (prefix, number, key) => {
    expect(mobileKey(prefix, number, null)).toBe(key)
  })

  it.each([
    ['a national number without a prefix', null, '333 1234567'],
    ['a prefix that is no country', '999', '1234567890'],
    ['a prefix with letters', 'IT', '3331234567'],
    ['a prefix of zeros', '000', '3331234567'],
    ['a prefix alone', '39', null],
    ['an empty number', '39', ''],
    ['a sign alone', '39', '+'],
    ['zeros alone', '39', '00'],
    ['a number that is too short', '39', '12'],
    ['a number that is too long', '39', '3'.repeat(18)],
    ['a number of 255 digits', '39', '3'.repeat(255)],
    ['a number with an extension', '44', '020 7946 0018 ext. 3'],
    ['words around a number', '39', 'call 3331234567'],
    ['a link', null, 'tel:+39-333-1234567'],
  ])('is null for %s', (_, prefix, number) => {
    expect(mobileKey(prefix, number, null)).toBeNull()
  })

  it('is null or a possible number in E.164, and the key of the key is the same', () => {
    const prefix = fc.oneof(
      fc.constantFrom('39', '+39', '0049', '1', '44', '7', '+1-242', null),
      fc.string({ maxLength: 6 }),
    )
    const number = fc.oneof(
      fc.stringMatching(/^[+0]{0,2}[\d ()/.-]{1,20}$/),
      fc.string({ unit: 'binary', maxLength: 255 }),
    )
    fc.assert(
      fc.property(prefix, number, (prefix, number) => {
        const key = mobileKey(prefix, number, null)
        if (key === null) return
        expect(key).toMatch(/^\+[1-9]\d{4,18}$/)
        expect(parsePhoneNumberFromString(key)?.isPossible()).toBe(true)
        expect(mobileKey(prefix, ` ${number} `, null)).toBe(key)
      }),
      { numRuns: 500 },
    )
  })
})

describe('the key of name and date of birth', () => {
  const ada = { first_name: 'Ada', last_name: 'Lovelace', date_of_birth: '1990-12-10' }

  it('ignores case, white space and compatibility forms', () => {
    const key = nameAndBirthKey(ada)
    expect(key).toBe('ada\nlovelace\n1990-12-10')
    expect(nameAndBirthKey({ ...ada, first_name: ' ADA\u00a0', last_name: 'love\tlace' })).not.toBe(key)
    expect(nameAndBirthKey({ ...ada, first_name: ' ADA\u3000' })).toBe(key)
    expect(nameAndBirthKey({ ...ada, last_name: 'Ｌｏｖｅｌａｃｅ' })).toBe(key)
    expect(nameAndBirthKey({ ...ada, first_name: 'A\nda' })).toBe(nameAndBirthKey({ ...ada, first_name: 'a  da' }))
  })

  it('needs a last name and a date of birth', () => {
    expect(nameAndBirthKey({ ...ada, last_name: null })).toBeNull()
    expect(nameAndBirthKey({ ...ada, last_name: ' \n' })).toBeNull()
    expect(nameAndBirthKey({ ...ada, date_of_birth: null })).toBeNull()
    expect(nameAndBirthKey({ ...ada, first_name: null })).toBe('\nlovelace\n1990-12-10')
  })

  it('is equal only for equal folded parts, and fits into an index', () => {
    const name = fc.oneof(fc.string({ maxLength: 4 }), text)
    fc.assert(
      fc.property(name, name, name, name, (first, last, otherFirst, otherLast) => {
        const [one, other] = [
          { ...ada, first_name: first, last_name: `x${last}` },
          { ...ada, first_name: otherFirst, last_name: `x${otherLast}` },
        ].map(nameAndBirthKey)
        if (first === otherFirst && last === otherLast) expect(one).toBe(other)
        if (!one!.startsWith('sha256:')) expect(one!.split('\n')).toHaveLength(3)
        expect(Buffer.byteLength(one!)).toBeLessThan(maxIndexedBytes)
      }),
    )
    const widest = '\ufdfa'.repeat(255)
    expect(Buffer.byteLength(nameAndBirthKey({ ...ada, last_name: widest })!)).toBeLessThan(maxIndexedBytes)
  })
})

describe('the keys that a write changes', () => {
  const field = fc.constantFrom(...Object.values(fieldsByKey).flat())
  const value = fc.constantFrom(null, '39', '3331234567', 'Ada@example.com', '1990-12-10', 'x')
  const person = fc.dictionary(field, value).map(fields => fields as Partial<Profile> as Profile)

  it('are those of the person after it, and only those whose fields it writes', () => {
    fc.assert(
      fc.property(person, person, (row, columns) => {
        const changed = changedMatchKeys(row, columns, null)
        expect({ ...matchKeys(row, null), ...changed }).toEqual(matchKeys({ ...row, ...columns }, null))
        for (const [key, fields] of Object.entries(fieldsByKey))
          expect(key in changed).toBe(fields.some(name => name in columns))
      }),
    )
  })
})
