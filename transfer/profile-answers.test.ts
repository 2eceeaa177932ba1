import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { usualSettings } from './csv.ts'
import { normalize } from './normalize-name.ts'
import { type Outcome, outcomes, type PlannedRule, readAnswers } from './profile-answers.ts'

const time = { name: 'Time', indices: [0] }
const evidence = { time: [time], ip: [], source: [] }
const options = {
  product: 'Acme',
  parse: usualSettings,
  exportedAt: null,
}

const ruleOf = (index: number, change: Partial<PlannedRule> = {}): PlannedRule => ({
  channel: 'email',
  column: { name: `Column ${index}`, indices: [index] },
  status: null,
  isList: false,
  isAnyWord: false,
  words: new Map([['yes', 'grant']]),
  consentType: 1,
  allConsentTypes: [1, 2, 3],
  grant: evidence,
  refusal: evidence,
  method: 'import',
  doubleOptIn: null,
  ...change,
})

const cells = (...texts: string[]) => {
  const all = ['2024-01-31T09:00:00Z', ...texts]
  return (index: number) => all[index]!
}
const read = (rules: PlannedRule[], ...texts: string[]) => readAnswers(rules, cells(...texts), '', options)
const states = (rules: PlannedRule[], ...texts: string[]) =>
  read(rules, ...texts).entries.map(({ consent_type_id, channel, state }) => [consent_type_id, channel, state])

describe('the answers of a record', () => {
  it('never have a grant where any column refuses or withholds, and never an answer of an unknown word', () => {
    const words = new Map(outcomes.map(outcome => [normalize(outcome), outcome]))
    const aRule = fc.record({
      channel: fc.constantFrom('email' as const, 'sms' as const),
      consentType: fc.constantFrom(1, 2, 3),
      word: fc.constantFrom(...outcomes, 'perhaps', '', '  '),
    })
    fc.assert(
      fc.property(fc.array(aRule, { minLength: 1, maxLength: 6 }), given => {
        const rules = given.map(({ channel, consentType }, index) => ruleOf(index + 1, { channel, consentType, words }))
        const answers = states(rules, ...given.map(({ word }) => word))
        const expected = (['email', 'sms'] as const).flatMap(channel =>
          [1, 2, 3].flatMap(type => {
            const here = given.filter(each => each.channel === channel)
            const has = (word: string, ofType = true) =>
              here.some(each => each.word === word && (!ofType || each.consentType === type))
            if (has('refuse') || has('refuse_all', false) || has('complaint', false)) return [[type, channel, false]]
            return has('grant') && !has('withhold', false) && !has('hard_bounce', false) ? [[type, channel, true]] : []
          }),
        )
        expect(answers.map(String).sort()).toEqual(expected.map(String).sort())
      }),
    )
  })

  it('ignore letter case, spaces, hyphens and underscores of a word', () => {
    const rule = ruleOf(1, { words: new Map([['never subscribed', 'refuse']]) })
    for (const word of ['NEVER_SUBSCRIBED', 'Never subscribed', ' never-subscribed '])
      expect(states([rule], word)).toEqual([[1, 'email', false]])
  })

  it('are read from every word of a list, and a refusal in it wins', () => {
    const words = new Map<string, Outcome>([
      ['yes', 'grant'],
      ['no', 'refuse'],
    ])
    const rule = ruleOf(1, { isList: true, words })
    for (const cell of ['["yes", "no"]', 'yes,no', 'no;yes', "['no']"])
      expect(states([rule], cell)).toEqual([[1, 'email', false]])
    expect(states([rule], '[]')).toEqual([])
  })

  it('quote the word and the other columns as their source', () => {
    const place = { name: 'Place', indices: [2] }
    const rule = ruleOf(1, { grant: { ...evidence, source: [place] } })
    expect(read([rule], 'Yes', 'shop').entries[0]!.source).toBe('Acme export; Column 1: Yes; Place: shop')
    expect(read([rule], 'Yes', '').entries[0]!.source).toBe('Acme export; Column 1: Yes')
  })

  it('have a time to the microsecond in UTC, whatever the product exports', () => {
    const at = (text: string) =>
      readAnswers([ruleOf(1)], index => [text, 'yes'][index]!, '', options).entries[0]!.collected_at
    expect(at('2024-01-31T09:00:00.123456+02:00')).toBe('2024-01-31T07:00:00.123456Z')
    expect(at('31.01.2024 9:00 PM +0000')).toBe('2024-01-31T21:00:00.000Z')
    expect(at('1/31/2024 12:05 AM Z')).toBe('2024-01-31T00:05:00.000Z')
  })

  it('are a fault of the column with a time that cannot be read, and have no time of their own', () => {
    const faults = (text: string) => readAnswers([ruleOf(1)], index => [text, 'yes'][index]!, '', options)
    for (const text of ['yesterday', '2024-02-30T00:00:00Z', '2024-01-31 13:00 PM Z', '2024-01-31 09:00:00'])
      expect(faults(text)).toMatchObject({ entries: [], details: [{ path: 'Time' }] })
    expect(faults('2024-01-31 09:00:00').details[0]!.message).toContain('--time-zone')
    const refusing = ruleOf(1, { words: new Map([['yes', 'refuse']]) })
    const readWithoutTime = (rule: PlannedRule, exportedAt: string | null) =>
      readAnswers([rule], index => ['', 'yes'][index]!, '', { ...options, exportedAt })
    expect(readWithoutTime(refusing, null).details).toEqual([
      { path: 'Time', message: expect.stringContaining('--exported-at') },
    ])
    const exportedAt = '2024-05-01T00:00:00.000Z'
    expect(readWithoutTime(refusing, exportedAt).entries).toMatchObject([
      { collected_at: exportedAt, source: 'Acme export; Column 1: yes; time of the export' },
    ])
    for (const at of [null, exportedAt]) {
      const [grant] = readWithoutTime(ruleOf(1), at).entries
      expect(grant).toMatchObject({ state: true, source: 'Acme export; Column 1: yes; no time in the export' })
      expect(grant).not.toHaveProperty('collected_at')
    }
  })

  it('need no time where a grant is withheld', () => {
    const withholding = ruleOf(2, { words: new Map([['*', 'withhold']]), isAnyWord: true })
    const { entries, details } = readAnswers(
      [ruleOf(1), withholding],
      index => ['', 'yes', 'bounced'][index]!,
      '',
      options,
    )
    expect({ entries, details }).toEqual({ entries: [], details: [] })
  })

  describe('with a double opt-in', () => {
    const columns = ['asked', 'asked_ip', 'confirmed', 'confirmed_ip'] as const
    const doubleOptIn = Object.fromEntries(columns.map((name, at) => [name, { name, indices: [at + 2] }]))
    const rule = ruleOf(1, { doubleOptIn: doubleOptIn as NonNullable<PlannedRule['doubleOptIn']> })
    const methodOf = (...texts: string[]) => read([rule], 'yes', ...texts).entries[0]!.method

    it('have that method only after a sign-up and a later confirmation, each with an address', () => {
      const asked = '2024-01-01T00:00:00Z'
      const confirmed = '2024-01-01T00:05:00Z'
      expect(methodOf(asked, '192.0.2.1', confirmed, '192.0.2.2')).toBe('double_opt_in')
      expect(methodOf('', '192.0.2.1', confirmed, '192.0.2.2')).toBe('import')
      expect(methodOf(asked, '', confirmed, '192.0.2.2')).toBe('import')
      expect(methodOf(asked, '192.0.2.1', confirmed, '')).toBe('import')
      expect(methodOf(asked, '192.0.2.1', '', '')).toBe('import')
      expect(methodOf(asked, '192.0.2.1', asked, '192.0.2.2')).toBe('import')
    })
  })
})
