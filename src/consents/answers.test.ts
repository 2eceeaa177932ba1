import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Channel, type ConsentType, channels } from '../organizations/definitions.ts'
import { type Answers, type ConsentBody, consentDefaults, expandAnswers, summaryFlag, withAnswers } from './answers.ts'

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

  it('a repeated type and channel is refused at the second entry', () => {
    const entry = { consent_type_id: 2, channel: 'email' as const, state: true }
    expect(expandAnswers({ consents: [entry, entry] }, {}, types, at).faults.map(fault => fault.path)).toEqual([
      '/consents/1/consent_type_id',
    ])
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
