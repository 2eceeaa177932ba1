import {
  type AddressEvents,
  type EventMark,
  isLater,
  isSuppressed,
  suppressionOf,
} from '../consents/deliverability-state.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Context } from '../db/context.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import { listPage } from '../route/result.ts'
import type { Channel } from '../values/channels.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { isDateTime } from '../values/formats.ts'
import { sortableTime } from '../values/instant.ts'
import {
  type AddressShape,
  type EventPageShape,
  type EventsQuery,
  type GivenEvent,
  maxEvents,
  type SuppressionPageShape,
  type SuppressionsQuery,
} from './schema.ts'
import { listEventsSql, listSuppressedSql, readPersonAddressesSql } from './sql.ts'

const defaultPage = 50

/** The state of an address with these events at a time. */
function shownState(events: AddressEvents, days: number, at: string): Omit<AddressShape, 'channel' | 'address'> {
  const found = suppressionOf(events, days)
  const { hard_bounce, soft_bounces: [soft] = [], delivered_at, lifted_at } = events
  const bounces = [hard_bounce, soft]
    .flatMap(mark => mark?.at ?? [])
    .toSorted((one, other) => (sortableTime(one) < sortableTime(other) ? -1 : 1))
  const last = {
    last_delivered_at: delivered_at ?? null,
    last_bounced_at: bounces.at(-1) ?? null,
    lifted_at: lifted_at ?? null,
  }
  if (!found || !isSuppressed(found, at)) return { state: 'deliverable', suppression: null, ...last }
  return { state: 'suppressed', suppression: { provider: null, reference: null, ...found }, ...last }
}

type AddressRow = { channel: Channel; address: string | null; events: AddressEvents; days: number }

/** Returns the state of each address of a person. Throws a Fault of 404. */
export async function readPersonDeliverability({ context, params, shown, signal }: Call) {
  const { by, identifier } = personOf(params)
  const values = [context.organization_id, identifier]
  const rows = await context.db.query<AddressRow & { id: string }>(readPersonAddressesSql[by], values, signal)
  shown.add(peopleStackId, (rows[0] ?? throwNoPerson()).id)
  const at = new Date().toISOString()
  const items = rows.flatMap(({ channel, address, events, days }): AddressShape[] =>
    address === null ? [] : [{ channel, address, ...shownState(events, days, at) }],
  )
  return { items }
}

/**
 * The rows of a page, and the cursor of the next one. The query reads one row more than the limit to find out if there
 * is one.
 */
function cursorPage<Row>(rows: readonly Row[], limit: number, cursorOf: (last: Row) => (string | number | null)[]) {
  const { items, has_more } = listPage(rows, limit)
  return { rows: items, next_cursor: has_more ? cursorOf(items.at(-1)!).join('~') : null }
}

/** A page of the suppressed addresses, the latest suppression first. Throws a Fault of 400 for a wrong cursor. */
export async function listSuppressed(
  { db, organization_id }: Context,
  query: SuppressionsQuery,
  signal: Signal,
): Promise<SuppressionPageShape> {
  const { channel = null, reason = null, search, cursor, limit = defaultPage } = query
  const at = new Date().toISOString()
  const after = cursor === undefined ? [null, null] : readCursor(cursor)
  const values = [organization_id, at, channel, reason, search?.trim().toLowerCase() ?? null, ...after, limit + 1]
  type Row = AddressRow & { suppressed_from: string | null; hash: string }
  const found = await db.query<Row>(listSuppressedSql, values, signal)
  const { rows, next_cursor } = cursorPage(found, limit, ({ suppressed_from, hash }) => [suppressed_from, hash])
  const items = rows.map(({ channel, address, events, days }) => ({
    channel,
    address,
    ...shownState(events, days, at),
  }))
  return { items, next_cursor }
}

function readCursor(cursor: string): [string, string] {
  const [time = '', hash = ''] = cursor.split('~')
  if (isDateTime(time) && /^[\da-f]{64}$/.test(hash)) return [time, hash]
  return throwBrokenRule('/cursor', 'is not a `next_cursor`')
}

type EventsRow = { channel: Channel; consent_type_id: number; address: string } & (
  | { events: AddressEvents; answered_at: null }
  | { events: null; answered_at: string }
)

/**
 * A page of events that give the addresses the same state in another kith. Throws a Fault of 400 for a wrong cursor.
 */
export async function listEvents(
  { db, organization_id }: Context,
  { cursor, limit = maxEvents }: EventsQuery,
  signal: Signal,
): Promise<EventPageShape> {
  const after = cursor === undefined ? ['', '', 0] : readEventsCursor(cursor)
  const found = await db.query<EventsRow>(listEventsSql, [organization_id, ...after, limit + 1], signal)
  const { rows, next_cursor } = cursorPage(found, limit, last => [last.channel, last.consent_type_id, last.address])
  return { items: rows.flatMap(eventsOf), next_cursor }
}

function readEventsCursor(cursor: string): [string, string, number] {
  const [, channel, consent_type_id, address] = /^([a-z]+)~(\d{1,9})~(.*)$/.exec(cursor) ?? []
  if (channel !== undefined) return [channel, address!, Number(consent_type_id)]
  return throwBrokenRule('/cursor', 'is not a `next_cursor`')
}

/** The events of an address that still count. Events before a lifting do not. */
function eventsOf({ channel, address, events, consent_type_id, answered_at }: EventsRow): GivenEvent[] {
  if (events === null) return [{ channel, address, type: 'unsubscribe', at: answered_at, consent_type_id }]
  const { hard_bounce, complaint, soft_bounces = [], delivered_at, lifted_at } = events
  const told = (type: GivenEvent['type'], mark: EventMark | undefined): GivenEvent[] =>
    mark && isLater(mark.at, lifted_at) ? [{ channel, address, type, ...mark }] : []
  return [
    ...told('hard_bounce', hard_bounce),
    ...told('complaint', complaint),
    ...soft_bounces.flatMap(mark => told('soft_bounce', mark)),
    ...told('delivered', delivered_at === undefined ? undefined : { at: delivered_at }),
  ]
}
