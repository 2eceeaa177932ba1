import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type DecisionFacts, decideContact } from './contact-decision.ts'
import type { ContactReason, RecordedAnswer } from './schema.ts'

const at = '2026-01-01T00:00:00.000Z'

const answer = (state: boolean, pending = false): RecordedAnswer => ({
  sequence: 7,
  version: 3,
  at,
  consent_type_id: 1,
  channel: 'email',
  state,
  previous_state: null,
  superseded: false,
  pending,
  collected_at: null,
  method: 'web_form',
  source: null,
  ip: null,
  user_agent: null,
  text_version: null,
  text_sha256: null,
  reference: null,
  consent_string: null,
  actor: 'tests',
  request_id: 'r',
})

const suppression = { event: 'hard_bounce', at, until: null, provider: 'ses', reference: null } as const

const facts: fc.Arbitrary<DecisionFacts> = fc.record({
  person: fc.constantFrom<DecisionFacts['person']>(
    undefined,
    { gone: { rule: 'deleted' as const, sequence: 9, at } },
    { gone: { rule: 'erased' as const, sequence: 9, at } },
    { address: null },
    { address: '' },
    { address: 'ada@example.com' },
    { address: 'ada@example.com' },
    { address: 'ada@example.com', suppression },
  ),
  purpose: fc.record({
    state: fc.constantFrom('active', 'active', 'archived'),
    mandatory: fc.boolean(),
    default_state: fc.boolean(),
  }),
  answer: fc.option(
    fc
      .record({ state: fc.boolean(), pending: fc.boolean() })
      .map(({ state, pending }) => answer(state, state && pending)),
    { nil: undefined },
  ),
  addressAnswer: fc.option(
    fc.record({
      state: fc.boolean(),
      answered_at: fc.constantFrom(at, null),
      sequence: fc.constantFrom(7, 8),
      person_id: fc.constantFrom('b', null),
    }),
    { nil: undefined },
  ),
})

/** The documented meaning of `allowed`, without an order of rules. */
function mayBeWrittenTo({ person, purpose, answer, addressAnswer }: DecisionFacts): boolean {
  const hasAddress = person !== undefined && 'address' in person && Boolean(person.address)
  const consents = purpose.mandatory || (answer ? answer.state && !answer.pending : purpose.default_state)
  const isSuppressed = person !== undefined && 'suppression' in person && person.suppression !== undefined
  // The person gave the answer 7.
  const refuses = addressAnswer?.state === false && (!answer || addressAnswer.sequence !== answer.sequence)
  const isWritable = hasAddress && !isSuppressed && purpose.state === 'active'
  return isWritable && consents && (purpose.mandatory || !refuses)
}

const order = [
  'not_found',
  'deleted',
  'erased',
  'no_address',
  'suppressed',
  'archived',
  'mandatory',
  'answer',
  'default',
  'address_answer',
]

const allows = (reason: ContactReason) =>
  reason.rule === 'mandatory' || ('state' in reason && reason.state && !('pending' in reason && reason.pending))

describe('a decision about a person', () => {
  it('allows exactly what the person, the consent type and the answer allow together', () => {
    fc.assert(
      fc.property(facts, given => {
        expect(decideContact(given).allowed).toBe(mayBeWrittenTo(given))
      }),
    )
  })

  it('names one rule that allows, or only rules that forbid, each once and in the documented order', () => {
    fc.assert(
      fc.property(facts, given => {
        const { allowed, reasons } = decideContact(given)
        const rules = reasons.map(({ rule }) => rule)
        expect(rules).toEqual(order.filter(rule => (rules as string[]).includes(rule)))
        expect(reasons.map(allows)).toEqual(allowed ? [true] : reasons.map(() => false))
        expect(reasons.length).toBeGreaterThan(0)
      }),
    )
  })

  it('allows once every rule that it names has been dealt with', () => {
    const remedies: Record<ContactReason['rule'], (given: DecisionFacts) => DecisionFacts> = {
      not_found: given => ({ ...given, person: { address: 'a@example.com' } }),
      deleted: given => ({ ...given, person: { address: 'a@example.com' } }),
      erased: given => ({ ...given, person: { address: 'a@example.com' } }),
      no_address: given => ({ ...given, person: { address: 'a@example.com' } }),
      suppressed: given => ({ ...given, person: { address: 'a@example.com' } }),
      archived: given => ({ ...given, purpose: { ...given.purpose, state: 'active' } }),
      answer: given => ({ ...given, answer: answer(true) }),
      default: given => ({ ...given, answer: answer(true) }),
      mandatory: given => given,
      address_answer: given => ({ ...given, addressAnswer: undefined }),
    }
    fc.assert(
      fc.property(facts, given => {
        const { reasons } = decideContact(given)
        const isEarly = ['not_found', 'deleted', 'erased'].includes(reasons[0]!.rule)
        const remedied = reasons.reduce((facts, { rule }) => remedies[rule](facts), given)
        // If the person does not exist, no other rule is reported.
        const final = isEarly
          ? decideContact(remedied).reasons.reduce((facts, { rule }) => remedies[rule](facts), remedied)
          : remedied
        expect(decideContact(final).allowed).toBe(true)
      }),
    )
  })

  it('carries the whole answer that it follows', () => {
    const purpose = { state: 'active', mandatory: false, default_state: true } as const
    const person = { address: 'ada@example.com' }
    for (const given of [answer(true), answer(false), answer(true, true)]) {
      const { allowed, reasons } = decideContact({ person, purpose, answer: given, addressAnswer: undefined })
      expect([allowed, reasons]).toEqual([given.state && !given.pending, [{ rule: 'answer', ...given }]])
    }
  })
})
