import { type AddressEvents, type EventMark, isLater } from '../consents/deliverability-state.ts'
import type { Context } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import type { Channel } from '../values/channels.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'
import { type EventPageShape, type EventsQuery, type GivenEvent, maxEvents } from './schema.ts'
import { listEventsSql } from './sql.ts'

type EventsRow = { channel: Channel; consent_type_id: number; address: string } & (
  | { events: AddressEvents; answered_at: null }
  | { events: null; answered_at: string }
)

/** A page of the events that make another kith decide about the addresses as this one does. Throws a Fault of 400 for a wrong cursor. */
export async function listEvents(
  { db, organization_id }: Context,
  { cursor, limit = maxEvents }: EventsQuery,
  signal: Signal,
): Promise<EventPageShape> {
  const after = cursor === undefined ? ['', '', 0] : readEventsCursor(cursor)
  const rows = await db.query<EventsRow>(listEventsSql, [organization_id, ...after, limit + 1], signal)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const next = rows.length > limit && last ? [last.channel, last.consent_type_id, last.address].join('~') : null
  return { items: page.flatMap(eventsOf), next_cursor: next }
}

function readEventsCursor(cursor: string): [string, string, number] {
  const [, channel, consent_type_id, address] = /^([a-z]+)~(\d{1,9})~(.*)$/.exec(cursor) ?? []
  if (channel !== undefined) return [channel, address!, Number(consent_type_id)]
  throw new Fault(createValueRefusal('/cursor', 'is not a `next_cursor`'))
}

/** The events of an address that count: what came before a lifting does not. */
function eventsOf({ channel, address, events, consent_type_id, answered_at }: EventsRow): GivenEvent[] {
  if (events === null) return [{ channel, address, type: 'unsubscribe', at: answered_at, consent_type_id }]
  const { hard_bounce, complaint, soft_bounces = [], delivered_at, lifted_at } = events
  const marks: [GivenEvent['type'], EventMark | undefined][] = [
    ['hard_bounce', hard_bounce],
    ['complaint', complaint],
    ...soft_bounces.map((mark): [GivenEvent['type'], EventMark] => ['soft_bounce', mark]),
    ['delivered', delivered_at === undefined ? undefined : { at: delivered_at }],
  ]
  return marks.flatMap(([type, mark]) =>
    mark && isLater(mark.at, lifted_at) ? [{ channel, address, type, ...mark }] : [],
  )
}
