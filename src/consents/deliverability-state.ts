import { sortableTime } from '../values/instant.ts'

// The state of an address follows from its events. Every function is pure. Neither the order nor the repetition of
// events changes the state: the last event of each type counts, and the soft bounces after the last delivery.

/** The events that decide whether an address can be written to, in the order of the documentation. */
export const deliveryEventTypes = ['hard_bounce', 'soft_bounce', 'complaint', 'delivered'] as const
export type DeliveryEventType = (typeof deliveryEventTypes)[number]

/** The events that can suppress an address. */
export const suppressionReasons = ['hard_bounce', 'soft_bounce', 'complaint'] as const
export type SuppressionReason = (typeof suppressionReasons)[number]

/** An event of a mail provider. `at` is as `utcTime` prints it. */
export type EventMark = { at: string } & Origin
/** Where an event comes from: `reference` is its identifier at the provider. */
type Origin = { provider?: string; reference?: string }

/**
 * The events that decide about an address. Absent: there was none. `lifted_at` is the last lifting of a suppression.
 */
export type AddressEvents = {
  hard_bounce?: EventMark
  complaint?: EventMark
  /** The soft bounces after the last delivery and the last lifting, the latest first. */
  soft_bounces?: readonly EventMark[]
  delivered_at?: string
  lifted_at?: string
}

/** The suppression of an address, which may have ended. `until` is null if only a person can lift it. */
export type Suppression = { reason: SuppressionReason; from: string; until: string | null } & Omit<EventMark, 'at'>

/** This many soft bounces within this time suppress an address. */
const softBounces = { count: 3, withinMs: 30 * 86_400_000 }
const maxSoftBounces = 100

/** Adds an event, or the lifting of a suppression. Returns the same object if it changes nothing. */
export function withEvent(events: AddressEvents, type: DeliveryEventType | 'lifted', mark: EventMark): AddressEvents {
  switch (type) {
    case 'hard_bounce':
    case 'complaint': {
      const known = events[type]
      return known && compareMarks(known, mark) >= 0 ? events : { ...events, [type]: mark }
    }
    case 'soft_bounce':
      return withSoftBounce(events, mark)
    default:
      return withTime(events, type === 'lifted' ? 'lifted_at' : 'delivered_at', mark.at)
  }
}

/** Whether a time is later than another one, or there is no other one. */
export const isLater = (one: string, other: string | undefined): boolean =>
  other === undefined || sortableTime(one) > sortableTime(other)

function withTime(events: AddressEvents, name: 'delivered_at' | 'lifted_at', at: string): AddressEvents {
  if (!isLater(at, events[name])) return events
  const { soft_bounces = [], ...others } = events
  const left = soft_bounces.filter(mark => isLater(mark.at, at))
  return { ...others, [name]: at, ...(left.length > 0 && { soft_bounces: left }) }
}

/** Bounces of one moment are one bounce, unless their references or providers differ. */
function withSoftBounce(events: AddressEvents, mark: EventMark): AddressEvents {
  const { soft_bounces = [], delivered_at, lifted_at } = events
  if (!isLater(mark.at, delivered_at) || !isLater(mark.at, lifted_at)) return events
  const same = soft_bounces.find(({ at, ...known }) => at === mark.at && isOneEvent(known, mark))
  if (same && compareMarks(same, mark) >= 0) return events
  const next = [...soft_bounces.filter(other => other !== same), mark].sort((one, other) => compareMarks(other, one))
  const kept = next.slice(0, maxSoftBounces)
  return kept.includes(mark) ? { ...events, soft_bounces: kept } : events
}

/** Whether events of one type and time are one. Without a reference, nothing tells them apart. */
const isOneEvent = (one: Origin, other: Origin): boolean =>
  one.reference === undefined || other.reference === undefined || isSameOrigin(one, other)

const isSameOrigin = (one: Origin, other: Origin): boolean =>
  one.reference === other.reference && one.provider === other.provider

/** Whether an event that was sent without a time is recorded already: its provider and reference tell. */
export function isRecorded(events: AddressEvents, type: DeliveryEventType, event: Origin): boolean {
  const { hard_bounce, complaint, soft_bounces } = events
  const marks =
    { hard_bounce: [hard_bounce], complaint: [complaint], soft_bounce: soft_bounces, delivered: [] }[type] ?? []
  return event.reference !== undefined && marks.some(mark => mark && isSameOrigin(mark, event))
}

/** The order of events of one type: by time, then by the other members, which makes it total. A reference is above none. */
const compareMarks = (one: EventMark, other: EventMark): number =>
  compareTexts(sortableTime(one.at), sortableTime(other.at)) ||
  compareTexts(one.reference ?? '', other.reference ?? '') ||
  compareTexts(one.provider ?? '', other.provider ?? '')

const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other))

/**
 * The suppression of an address, which may have ended; undefined if there was none or it was lifted. A bounce
 * suppresses for `days`, a complaint until a person lifts it.
 */
export function suppressionOf(events: AddressEvents, days: number): Suppression | undefined {
  const { hard_bounce, complaint, lifted_at } = events
  const standing = (mark: EventMark | undefined) => (mark && isLater(mark.at, lifted_at) ? mark : undefined)
  const complained = standing(complaint)
  if (complained) return suppression('complaint', complained, null)
  const [hard, soft] = [standing(hard_bounce), lastOfSeveral(events.soft_bounces ?? [])]
  const isHard = hard && (!soft || sortableTime(hard.at) >= sortableTime(soft.at))
  const mark = isHard ? hard : soft
  if (!mark) return undefined
  const until = new Date(Date.parse(mark.at) + days * 86_400_000).toISOString()
  return suppression(isHard ? 'hard_bounce' : 'soft_bounce', mark, until)
}

const suppression = (reason: SuppressionReason, { at, ...event }: EventMark, until: string | null): Suppression => ({
  reason,
  from: at,
  until,
  ...event,
})

/** The last soft bounce that is the third within thirty days. */
function lastOfSeveral(marks: readonly EventMark[]): EventMark | undefined {
  const { count, withinMs } = softBounces
  return marks.find((mark, index) => {
    const first = marks[index + count - 1]
    return first !== undefined && Date.parse(mark.at) - Date.parse(first.at) <= withinMs
  })
}

/** Whether an address is suppressed at a time, RFC 3339 in UTC. */
export const isSuppressed = (found: Pick<Suppression, 'until'> | undefined, at: string): boolean =>
  found !== undefined && (found.until === null || sortableTime(found.until) > sortableTime(at))
