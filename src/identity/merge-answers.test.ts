import fc from 'fast-check'
import { expect, it } from 'vitest'
import { noProfile } from '../../test/support/profile.ts'
import { type Answers, answerKey, type StandingAnswer } from '../consents/answers.ts'
import { decideContact } from '../consents/contact-decision.ts'
import type { CurrentState, EntityRow } from '../entities/entity-row.ts'
import { buildDefinitions, type ConsentType } from '../organizations/definitions.ts'
import { channels, channelTable } from '../values/channels.ts'
import { planMerge } from './merge.ts'

const time = fc.integer({ min: 0, max: 4 }).map(day => `2026-01-0${day + 1}T00:00:00.000Z`)
const answer: fc.Arbitrary<StandingAnswer> = fc
  .record({ kind: fc.constantFrom('grant', 'refusal', 'pending'), answered_at: time })
  .map(({ kind, answered_at }) => ({
    state: kind === 'grant',
    answered_at,
    ...(kind === 'pending' && { pending: true as const }),
  }))
const questions = [1, 2, 3].flatMap(id => channels.map(channel => answerKey(id, channel)))
const answers: fc.Arbitrary<Answers> = fc
  .tuple(...questions.map(() => fc.option(answer, { nil: undefined })))
  .map(given => Object.fromEntries(questions.flatMap((key, index) => (given[index] ? [[key, given[index]!]] : []))))

const consentType = (id: number) =>
  fc.record({ mandatory: fc.boolean(), default_state: fc.boolean(), archived: fc.boolean() }).map(
    ({ mandatory, default_state, archived }): ConsentType => ({
      id,
      key: `type${id}`,
      name: `Type ${id}`,
      description: null,
      state: archived ? 'archived' : 'active',
      mandatory,
      default_state,
      channels: channels.map(channel => ({ channel, is_default: false, double_opt_in: false })),
      text_versions: 0,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
    }),
  )
const types = fc.tuple(...[1, 2, 3].map(consentType))

const flag = fc.option(fc.boolean())
const row = (id: string): fc.Arbitrary<EntityRow> =>
  fc
    .record({
      answers,
      email: fc.constantFrom(null, `${id}@example.org`),
      mobile_number: fc.constantFrom(null, '+4915112345678'),
      email_consent: flag,
      sms_consent: flag,
      push_notification_consent: flag,
    })
    .map(fields => ({
      stack_id: 0,
      id,
      external_id: id,
      active: true,
      version: 1,
      ...noProfile,
      attributes: {},
      ...fields,
    }))
const person = (id: string): fc.Arbitrary<CurrentState> => row(id).map(given => ({ row: given, links: new Map() }))

const definitionsOf = (consent_types: ConsentType[]) =>
  buildDefinitions(1, { version: 1, stacks: [], attributes: [], consent_types })

/** Whether the person may be written to, as `contactable` decides. */
function isContactable({ row }: CurrentState, type: ConsentType, channel: 'email' | 'sms'): boolean {
  const given = row.answers[answerKey(type.id, channel)]
  const address = channel === 'email' ? row.email : row.mobile_number
  const standing = given && { ...given, pending: given.pending === true }
  return decideContact({ person: { address }, purpose: type, answer: standing as never, addressAnswer: undefined })
    .allowed
}

const runs = Number(process.env.KITH_MERGE_RUNS ?? 20_000)

it('makes nobody contactable unless the later answer of the two to that question was a grant', () => {
  const seen = { pairs: 0, questions: 0, contactable: 0, becameContactable: 0 }
  fc.assert(
    fc.property(person('ada'), person('bob'), types, (survivor, other, consent_types) => {
      const definitions = definitionsOf(consent_types)
      const { fill } = planMerge(survivor, other, definitions, 100)
      const merged = { ...survivor, row: { ...survivor.row, ...fill.columns } as EntityRow }
      seen.pairs += 1
      for (const type of consent_types)
        for (const channel of channels) {
          seen.questions += 1
          if (!isContactable(merged, type, channel)) continue
          seen.contactable += 1
          const key = answerKey(type.id, channel)
          const given = [survivor, other].flatMap(({ row }) => row.answers[key] ?? [])
          const latest = given
            .map(({ answered_at }) => answered_at)
            .sort()
            .at(-1)
          const last = given.filter(({ answered_at }) => answered_at === latest)
          const before = [survivor, other].some(one => isContactable(one, type, channel))
          if (!before) seen.becameContactable += 1
          if (type.mandatory) continue
          if (last.length === 0) expect(type.default_state).toBe(true)
          // The latest answers have the same time: none is a refusal, and one is a confirmed grant.
          else {
            expect(last.every(({ state, pending }) => state || pending)).toBe(true)
            expect(last.some(({ state }) => state)).toBe(true)
          }
        }
      if ([survivor, other].some(({ row }) => row.push_notification_consent === false))
        expect(merged.row.push_notification_consent).toBe(false)
    }),
    { numRuns: runs },
  )
  console.log(`merges: ${JSON.stringify(seen)}`)
})

it('keeps a refusal of a channel that has no purpose to answer', () => {
  fc.assert(
    fc.property(person('ada'), person('bob'), (survivor, other) => {
      const definitions = definitionsOf([])
      const without = (state: CurrentState) => ({ ...state, row: { ...state.row, answers: {} } })
      const { fill } = planMerge(without(survivor), without(other), definitions, 100)
      for (const channel of channels) {
        const name = channelTable[channel].flag
        const isRefused = [survivor, other].some(({ row }) => row[name] === false)
        if (isRefused) expect({ ...survivor.row, ...fill.columns }[name]).toBe(false)
      }
    }),
    { numRuns: 1_000 },
  )
})

it('takes the later answer to each question, whatever the order of the two people', () => {
  fc.assert(
    fc.property(person('ada'), person('bob'), types, (one, other, consent_types) => {
      const definitions = definitionsOf(consent_types)
      const mergedAnswers = (into: CurrentState, from: CurrentState) => {
        const { fill } = planMerge(into, from, definitions, 100)
        const standing = fill.columns.answers ?? into.row.answers
        return Object.fromEntries(
          Object.entries(standing).map(([key, { person_id: _, ...answer }]) => [key, answer] as const),
        )
      }
      expect(mergedAnswers(one, other)).toEqual(mergedAnswers(other, one))
    }),
    { numRuns: 2_000 },
  )
})
