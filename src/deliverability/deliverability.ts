import { type AddressEvents, isSuppressed, suppressionOf } from '../consents/deliverability-state.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Context } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import type { Channel } from '../values/channels.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'
import { isDateTime } from '../values/formats.ts'
import { sortableTime } from '../values/instant.ts'
import type { AddressShape, SuppressionPageShape, SuppressionsQuery } from './schema.ts'
import { listSuppressedSql, readPersonAddressesSql } from './sql.ts'

const defaultPage = 50

/** What holds for an address with these events at a time. */
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

/** What holds for the addresses of a person. Throws a Fault of 404. */
export async function readPersonDeliverability(
  context: Context,
  { by, identifier }: { by: 'id' | 'external_id'; identifier: string },
  signal: Signal,
): Promise<{ id: string; items: AddressShape[] }> {
  const { db, organization_id } = context
  const rows = await db.query<AddressRow & { id: string }>(
    readPersonAddressesSql[by],
    [organization_id, identifier],
    signal,
  )
  const { id } = rows[0] ?? throwNoPerson()
  const at = new Date().toISOString()
  const items = rows.flatMap(({ channel, address, events, days }) =>
    address === null ? [] : [{ channel, address, ...shownState(events, days, at) }],
  )
  return { id, items }
}

/** A page of the suppressed addresses, the latest suppression first. Throws a Fault of 400 for a wrong cursor. */
export async function listSuppressed(
  context: Context,
  { channel, reason, search, cursor, limit = defaultPage }: SuppressionsQuery,
  signal: Signal,
): Promise<SuppressionPageShape> {
  const { db, organization_id } = context
  const at = new Date().toISOString()
  const after = cursor === undefined ? [null, null] : readCursor(cursor)
  const asked = [channel ?? null, reason ?? null, search?.trim().toLowerCase() ?? null]
  type Row = AddressRow & { suppressed_from: string | null; hash: string }
  const values = [organization_id, at, ...asked, ...after, limit + 1]
  const rows = await db.query<Row>(listSuppressedSql, values, signal)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const items = page.map(({ channel, address, events, days }) => ({
    channel,
    address,
    ...shownState(events, days, at),
  }))
  return { items, next_cursor: rows.length > limit && last ? `${last.suppressed_from}~${last.hash}` : null }
}

function readCursor(cursor: string): [string, string] {
  const [time = '', hash = ''] = cursor.split('~')
  if (isDateTime(time) && /^[\da-f]{64}$/.test(hash)) return [time, hash]
  throw new Fault(createValueRefusal('/cursor', 'is not a `next_cursor`'))
}
