import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ConsentType } from '../organizations/definitions.ts'
import { type Channel, channels } from '../values/channels.ts'
import {
  type Answers,
  type ConsentAssignment,
  type ConsentBody,
  consentDefaults,
  expandAnswers,
  summaryFlag,
  withAnswers,
} from './answers.ts'
import { type Method, methods } from './schema.ts'

const at = '2026-01-01T00:00:00.000Z'

function type(id: number, rest: Partial<ConsentType> = {}): ConsentType {
  const both = channels.map(channel => ({ channel, is_default: false, double_opt_in: false }))
  const times = { created_at: at, updated_at: at }
  const named = { key: `t${id}`, name: `t${id}`, description: null }
  return {
    ...{ id, ...named, state: 'active', mandatory: false, default_state: false, channels: both, text_versions: 3 },
    ...{ ...times, ...rest },
  }
}

const emailDefault = [
  { channel: 'email' as const, is_default: true, double_opt_in: false },
  { channel: 'sms' as const, is_default: false, double_opt_in: false },
]

describe('the flags and entries of a body', () => {
  const types = [
    type(1, { channels: emailDefault }),
    type(2),
    type(3, { mandatory: true }),
    type(4, { state: 'archived' }),
    type(5, { channels: [{ channel: 'sms', is_default: false, double_opt_in: false }] }),
  ]

  it('the flag false refuses every active, non-mandatory purpose of the channel', () => {
    const { answers } = expandAnswers({ email_consent: false }, {}, types, at)
    expect(answers.map(answer => [answer.consent_type_id, answer.channel, answer.state])).toEqual([
      [1, 'email', false],
      [2, 'email', false],
    ])
  })

  it('the flag true grants only the default purpose and keeps every refusal', () => {
    const refused: Answers = { '2:email': { state: false, answered_at: at } }
    const { answers } = expandAnswers({ email_consent: true }, refused, types, at)
    expect(answers).toMatchObject([
      { consent_type_id: 1, channel: 'email', state: true, previous_state: null, source: 'flag' },
    ])
    expect(answers).toHaveLength(1)
  })

  it('the flag true is refused on a channel without a default purpose', () => {
    expect(expandAnswers({ sms_consent: true }, {}, types, at).faults.map(fault => fault.path)).toEqual([
      '/sms_consent',
    ])
  })

  it('the flag false itself is stored if no purpose can be answered', () => {
    const given = expandAnswers({ sms_consent: false }, {}, [type(1, { mandatory: true })], at)
    expect(given).toEqual({ answers: [], standaloneFlags: { sms_consent: false }, faults: [] })
  })

  it('null answers nothing', () => {
    expect(expandAnswers({ email_consent: null, sms_consent: null, consents: null }, {}, types, at).answers).toEqual([])
  })

  it('entries override the flags', () => {
    const entry = { consent_type_id: 2, channel: 'email' as const, state: true }
    const { answers } = expandAnswers({ email_consent: false, consents: [entry] }, {}, types, at)
    expect(answers.map(answer => [answer.consent_type_id, answer.state, answer.source])).toEqual([
      [1, false, 'flag'],
      [2, true, 'entry'],
    ])
  })

  it.each([
    [{ consent_type_id: 9, channel: 'email', state: true }, '/consents/0/consent_type_id'],
    [{ consent_type_id: 4, channel: 'email', state: true }, '/consents/0/consent_type_id'],
    [{ consent_type_id: 3, channel: 'email', state: false }, '/consents/0/consent_type_id'],
    [{ consent_type_id: 5, channel: 'email', state: true }, '/consents/0/channel'],
  ] as const)('the entry %j is refused at %s', (entry, path) => {
    expect(expandAnswers({ consents: [entry] }, {}, types, at).faults.map(fault => fault.path)).toEqual([path])
  })
})

describe('a history of answers and flags', () => {
  const types = [
    type(1, { channels: emailDefault }),
    type(2),
    type(3, { mandatory: true }),
    type(4, { state: 'archived' }),
  ]
  const entry = fc.record({
    consent_type_id: fc.constantFrom(1, 2),
    channel: fc.constantFrom<Channel>('email', 'sms'),
    state: fc.boolean(),
  })
  const body = fc.record(
    {
      email_consent: fc.option(fc.boolean()),
      sms_consent: fc.constantFrom(false, null),
      consents: fc.uniqueArray(entry, { selector: given => `${given.consent_type_id}${given.channel}`, maxLength: 4 }),
    },
    { requiredKeys: [] },
  )

  /** The model: the last state of each purpose and channel. */
  function replay(bodies: ConsentBody[]): Map<string, boolean> {
    const last = new Map<string, boolean>()
    for (const { email_consent, sms_consent, consents } of bodies) {
      if (email_consent === false) for (const id of [1, 2]) last.set(`${id}:email`, false)
      if (email_consent === true) last.set('1:email', true)
      if (sms_consent === false) for (const id of [1, 2]) last.set(`${id}:sms`, false)
      for (const given of consents ?? []) last.set(`${given.consent_type_id}:${given.channel}`, given.state)
    }
    return last
  }

  it('leads to the current answers and summary flags that a model computes', () => {
    fc.assert(
      fc.property(fc.array(body, { maxLength: 12 }), bodies => {
        let current: Answers = {}
        for (const given of bodies as ConsentBody[]) {
          const { answers, faults } = expandAnswers(given, current, types, at)
          expect(faults).toEqual([])
          for (const answer of answers)
            expect(answer.previous_state).toBe(current[`${answer.consent_type_id}:${answer.channel}`]?.state ?? null)
          current = withAnswers(current, answers)
        }
        const model = replay(bodies as ConsentBody[])
        expect(Object.fromEntries(Object.entries(current).map(([key, { state }]) => [key, state]))).toEqual(
          Object.fromEntries(model),
        )
        for (const channel of channels) {
          const states = [...model].filter(([key]) => key.endsWith(channel)).map(([, state]) => state)
          expect(summaryFlag(channel, current, types)).toBe(states.length === 0 ? null : states.includes(true))
        }
      }),
    )
  })
})

describe('the consents of a person without answers', () => {
  it('contain every active type and channel with the key of its answer and the source of its state', () => {
    const types = [
      type(1),
      type(2, { default_state: true }),
      type(3, { mandatory: true }),
      type(4, { state: 'archived' }),
    ]
    expect(consentDefaults(types).filter(({ consent }) => consent.channel === 'email')).toEqual([
      {
        answerKey: '1:email',
        consent: { consent_type_id: 1, channel: 'email', state: false, source: 'default', answered_at: null },
      },
      {
        answerKey: '2:email',
        consent: { consent_type_id: 2, channel: 'email', state: true, source: 'default', answered_at: null },
      },
      {
        answerKey: null,
        consent: { consent_type_id: 3, channel: 'email', state: true, source: 'mandatory', answered_at: null },
      },
    ])
  })
})

it('an archived purpose no longer grants, but its stored answer still counts as an answer', () => {
  const archived = [type(1, { state: 'archived' })]
  expect(summaryFlag('email', { '1:email': { state: true, answered_at: at } }, archived)).toBe(false)
})

describe('answers with a time of collection', () => {
  const doubleOptIn = [
    { channel: 'email' as const, is_default: true, double_opt_in: true },
    { channel: 'sms' as const, is_default: true, double_opt_in: false },
  ]
  const types = [type(1, { channels: doubleOptIn })]
  /** The times in order. Compared as texts, some have another order. */
  const times = [
    '2020-01-01T00:00:00.000Z',
    '2020-01-01T00:00:00.001Z',
    '2020-01-01T00:00:00.001001Z',
    '2020-01-01T00:00:00.001010Z',
    '2021-01-01T00:00:00.000Z',
  ]
  const entry = fc.record(
    {
      consent_type_id: fc.constant(1),
      channel: fc.constantFrom<Channel>('email', 'sms'),
      state: fc.boolean(),
      collected_at: fc.constantFrom(...times),
      method: fc.constantFrom<Method>('double_opt_in', 'web_form', 'import'),
      text_version: fc.constantFrom(1, 2, 3),
    },
    { requiredKeys: ['consent_type_id', 'channel', 'state', 'collected_at'] },
  )
  const question = { consent_type_id: 1, channel: 'sms' as const }
  const write = (current: Answers, consents: ConsentBody['consents'], now = at) => {
    const { answers, faults } = expandAnswers({ consents: consents ?? null }, current, types, now)
    expect(faults).toEqual([])
    return { answers, current: withAnswers(current, answers) }
  }

  /**
   * The model: the latest answer is in force. At equal times a refusal wins, then a confirmation, then the later text.
   */
  function standing(entries: ConsentAssignment[]): Answers {
    const strengthOf = (given: ConsentAssignment) => {
      if (!given.state) return 2
      return given.channel === 'sms' || given.method === 'double_opt_in' ? 1 : 0
    }
    // The earlier in the list, the higher the rank. An answer without a method has the lowest.
    const rankOf = ({ method }: ConsentAssignment) => (method ? -methods.indexOf(method) : -methods.length)
    const sorted = entries.toSorted(
      (a, b) =>
        times.indexOf(a.collected_at!) - times.indexOf(b.collected_at!) ||
        strengthOf(a) - strengthOf(b) ||
        (a.text_version ?? 0) - (b.text_version ?? 0) ||
        rankOf(a) - rankOf(b),
    )
    return Object.fromEntries(
      sorted.map(given => {
        const { channel, collected_at, method, text_version } = given
        const strength = strengthOf(given)
        const rest = {
          ...(strength === 0 && { pending: true }),
          ...(method && { method }),
          ...(text_version && { text_version }),
        }
        return [`1:${channel}`, { state: strength === 1, answered_at: collected_at!, ...rest }]
      }),
    ) as Answers
  }

  it('end in the state of the model, in any order of arrival', () => {
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 8 }), entries => {
        let current: Answers = {}
        for (const given of entries) {
          const written = write(current, [given as ConsentAssignment])
          current = written.current
          const [answer] = written.answers
          expect(answer!.state).toBe(given.state)
        }
        expect(current).toEqual(standing(entries as ConsentAssignment[]))
      }),
    )
  })

  it('change nothing if they are superseded', () => {
    const refused = write({}, [{ ...question, state: false, collected_at: times[1]! }]).current
    for (const [collected_at, superseded] of [
      [times[0]!, true],
      [times[1]!, true],
      [times[2]!, false],
    ] as const) {
      const { answers, current } = write(refused, [{ ...question, state: true, collected_at }])
      expect([collected_at, answers[0]!.superseded, answers[0]!.previous_state]).toEqual([
        collected_at,
        superseded,
        false,
      ])
      expect(current['1:sms']!.state).toBe(!superseded)
      if (superseded) expect(current).toEqual(refused)
    }
  })

  it('move the time of an equal answer only forward', () => {
    const first = write({}, [{ ...question, state: true, collected_at: times[1]! }]).current
    expect(write(first, [{ ...question, state: true, collected_at: times[2]! }]).current['1:sms']!.answered_at).toBe(
      times[2],
    )
    expect(write(first, [{ ...question, state: true, collected_at: times[0]! }]).current).toEqual(first)
  })

  it('stand in the order of writes without a time, even if the clock of a client was ahead', () => {
    const ahead = '2026-01-01T00:00:30.000Z'
    const { current } = write({}, [{ ...question, state: false, collected_at: ahead }])
    const { answers, current: next } = write(current, [{ ...question, state: true }])
    expect(answers[0]).toMatchObject({ superseded: false, collected_at: '2026-01-01T00:00:30.001Z' })
    expect(next['1:sms']).toEqual({ state: true, answered_at: '2026-01-01T00:00:30.001Z' })
  })

  it.each([
    ['2020-06-01t02:00:00.5000+02:00', '2020-06-01T00:00:00.500Z'],
    ['2020-06-01T00:00:00z', '2020-06-01T00:00:00.000Z'],
    ['2020-06-01T00:00:00.123456Z', '2020-06-01T00:00:00.123456Z'],
    ['2020-06-01T00:00:00.000100Z', '2020-06-01T00:00:00.000100Z'],
    ['2020-06-01T05:30:00.123456789+05:30', '2020-06-01T00:00:00.123456Z'],
    ['2020-06-01T00:00:00.123000999Z', '2020-06-01T00:00:00.123Z'],
  ])('are kept in UTC to the microsecond, whatever their offset: %s', (collected_at, kept) => {
    expect(write({}, [{ ...question, state: true, collected_at }]).current['1:sms']!.answered_at).toBe(kept)
  })

  it('stand behind a write without a time, however fine the time that was ahead', () => {
    const { current } = write({}, [{ ...question, state: false, collected_at: '2026-01-01T00:00:30.000999Z' }])
    expect(write(current, [{ ...question, state: true }]).current['1:sms']).toEqual({
      state: true,
      answered_at: '2026-01-01T00:00:30.001Z',
    })
  })

  describe('on a channel with double opt-in', () => {
    const email = { consent_type_id: 1, channel: 'email' as const }
    const pending = { state: false, pending: true, answered_at: at }

    it.each<[string, ConsentBody]>([
      ['an entry', { consents: [{ ...email, state: true }] }],
      ['a flag', { email_consent: true }],
    ])('a grant by %s is pending and gives no consent', (_name, body) => {
      const { answers } = expandAnswers(body, {}, types, at)
      const current = withAnswers({}, answers)
      expect(answers).toMatchObject([{ state: true, pending: true, superseded: false }])
      expect(current).toEqual({ '1:email': pending })
      expect(summaryFlag('email', current, types)).toBe(false)
    })

    it('a confirmation grants, also without a pending grant, and a refusal is never pending', () => {
      const confirmation = { ...email, state: true, method: 'double_opt_in' as const }
      for (const current of [{}, write({}, [{ ...email, state: true }]).current])
        expect(write(current, [confirmation], '2026-01-01T00:00:01.000Z').current['1:email']).toEqual({
          state: true,
          answered_at: '2026-01-01T00:00:01.000Z',
          method: 'double_opt_in',
        })
      expect(
        write({ '1:email': { ...pending, pending: true } }, [{ ...email, state: false }]).answers[0],
      ).toMatchObject({
        state: false,
        pending: false,
        superseded: false,
      })
    })

    it('a repeated grant without a time keeps a confirmed one, and one with a later time waits again', () => {
      const { current } = write({}, [{ ...email, state: true, method: 'double_opt_in', collected_at: times[0]! }])
      expect(write(current, [{ ...email, state: true }]).current['1:email']!.state).toBe(true)
      expect(write(current, [{ ...email, state: true, collected_at: times[1]! }]).current['1:email']).toMatchObject({
        state: false,
        pending: true,
      })
    })
  })

  it.each([
    [{ text_version: 4 }, '/consents/0/text_version', 'is not a text of the consent type: its versions are 1 to 3'],
    [{ source: 'é'.repeat(1_025) }, '/consents/0/source', 'must be at most 2048 bytes in UTF-8'],
    [{ user_agent: 'é'.repeat(1_025) }, '/consents/0/user_agent', 'must be at most 2048 bytes in UTF-8'],
  ])('are refused with the evidence %j', (evidence, path, message) => {
    const consents = [{ ...question, state: true, ...evidence }]
    expect(expandAnswers({ consents }, {}, types, at)).toMatchObject({ answers: [], faults: [{ path, message }] })
  })

  it('are refused beside a flag that answers the same purpose, so that no refusal is lost', () => {
    const consents = [{ ...question, state: true, collected_at: times[0]! }]
    const fault = { path: '/consents/0/collected_at' }
    expect(expandAnswers({ sms_consent: false, consents }, {}, types, at)).toMatchObject({
      answers: [],
      faults: [fault],
    })
    expect(expandAnswers({ email_consent: false, consents }, {}, types, at).faults).toEqual([])
  })

  it('accept texts of exactly 2 KiB, and keep only the given evidence', () => {
    const source = 'é'.repeat(1_024)
    const { answers } = write({}, [{ ...question, state: true, source, ip: '::FFFF:192.0.2.7', text_version: 3 }])
    expect(answers[0]!.evidence).toEqual({ source, ip: '192.0.2.7', text_version: 3 })
    expect(write({}, [{ ...question, state: true }]).answers[0]!.evidence).toBeNull()
  })
})
