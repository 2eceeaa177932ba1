import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AddressEvents,
  type DeliveryEventType,
  isSuppressed,
  suppressionOf,
  withEvent,
} from './deliverability-state.ts'

const dayMs = 86_400_000
const startMs = Date.parse('2026-01-01T00:00:00.000Z')
const at = (days: number) => new Date(startMs + days * dayMs).toISOString()

type Told = { type: DeliveryEventType | 'lifted'; at: string; provider?: string; reference?: string }

const fold = (told: readonly Told[]) =>
  told.reduce<AddressEvents>((events, { type, ...mark }) => withEvent(events, type, mark), {})

const told: fc.Arbitrary<Told> = fc.record(
  {
    type: fc.constantFrom<Told['type']>(
      'hard_bounce',
      'soft_bounce',
      'soft_bounce',
      'complaint',
      'delivered',
      'lifted',
    ),
    at: fc.integer({ min: 0, max: 120 }).map(at),
    provider: fc.constantFrom('ses', 'postmark'),
    reference: fc.constantFrom('a', 'b'),
  },
  { requiredKeys: ['type', 'at'] },
)

/** The documented meaning, computed without a state: the event that suppresses an address, and until when. */
function expected(events: readonly Told[], days: number): { reason: string; until: number } | undefined {
  const timesOf = (type: Told['type']) => events.filter(each => each.type === type).map(each => Date.parse(each.at))
  const lifted = Math.max(0, ...timesOf('lifted'))
  const after = (type: Told['type'], moment: number) => timesOf(type).filter(time => time > moment)
  if (after('complaint', lifted).length > 0) return { reason: 'complaint', until: Number.POSITIVE_INFINITY }
  const hard = Math.max(0, ...after('hard_bounce', lifted))
  const softs = [...new Set(after('soft_bounce', Math.max(lifted, 0, ...timesOf('delivered'))))]
    .sort((a, b) => a - b)
    .flatMap(time => Array.from({ length: bouncesAt(events, time) }, () => time))
  const soft = Math.max(0, ...softs.filter((time, index) => index > 1 && time - softs[index - 2]! <= 30 * dayMs))
  if (hard === 0 && soft === 0) return undefined
  return { reason: hard >= soft ? 'hard_bounce' : 'soft_bounce', until: Math.max(hard, soft) + days * dayMs }
}

/** How many soft bounces of a moment there are: those with a reference that differ in it or in the provider, at least one. */
function bouncesAt(events: readonly Told[], time: number): number {
  const ofMoment = events.filter(({ type, at }) => type === 'soft_bounce' && Date.parse(at) === time)
  const referred = ofMoment.filter(({ reference }) => reference !== undefined)
  return Math.max(1, new Set(referred.map(({ provider, reference }) => `${provider} ${reference}`)).size)
}

describe('the state of an address', () => {
  it('is the same for any order and any repetition of its events', () => {
    fc.assert(
      fc.property(fc.array(told, { maxLength: 40 }), fc.infiniteStream(fc.nat()), (events, numbers) => {
        const shuffled = [...events, ...events]
          .map(event => ({ event, place: numbers.next().value as number }))
          .sort((one, other) => one.place - other.place)
          .map(({ event }) => event)
        expect(fold(shuffled)).toEqual(fold(events))
        expect(fold([...events, ...events])).toEqual(fold(events))
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the object that an event changes nothing of', () => {
    const events = fold([{ type: 'hard_bounce', at: at(3) }])
    expect(withEvent(events, 'hard_bounce', { at: at(3) })).toBe(events)
    expect(withEvent(events, 'hard_bounce', { at: at(2) })).toBe(events)
  })

  it('is suppressed by what the documentation says, and until then', () => {
    fc.assert(
      fc.property(fc.array(told, { maxLength: 12 }), fc.integer({ min: 1, max: 400 }), (events, days) => {
        const found = suppressionOf(fold(events), days)
        const until = found && (found.until === null ? Number.POSITIVE_INFINITY : Date.parse(found.until))
        expect(found && { reason: found.reason, until }).toEqual(expected(events, days))
      }),
      { numRuns: 1_000 },
    )
  })

  it('needs three soft bounces within thirty days, without a delivery between them', () => {
    const softAt = (...days: number[]) => days.map(day => ({ type: 'soft_bounce' as const, at: at(day) }))
    const isSuppressedBy = (events: Told[]) => suppressionOf(fold(events), 180) !== undefined
    expect(isSuppressedBy(softAt(1, 20))).toBe(false)
    expect(isSuppressedBy(softAt(1, 20, 31))).toBe(true)
    expect(isSuppressedBy(softAt(1, 20, 32))).toBe(false)
    expect(isSuppressedBy([...softAt(1, 20, 31), { type: 'delivered', at: at(10) }])).toBe(false)
    expect(isSuppressedBy([...softAt(1, 20, 31), { type: 'delivered', at: at(40) }])).toBe(false)
    expect(isSuppressedBy(softAt(1, 1, 1))).toBe(false)
    expect(isSuppressedBy(softAt(1, 1, 1).map((event, n) => ({ ...event, reference: `m${n}` })))).toBe(true)
  })

  it('ends by itself after a bounce, never after a complaint', () => {
    const bounced = suppressionOf(fold([{ type: 'hard_bounce', at: at(0) }]), 180)
    expect([isSuppressed(bounced, at(179)), isSuppressed(bounced, at(180))]).toEqual([true, false])
    const complained = suppressionOf(fold([{ type: 'complaint', at: at(0) }]), 180)
    expect(isSuppressed(complained, at(100_000))).toBe(true)
  })
})
