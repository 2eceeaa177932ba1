import { storeAddressAnswers } from '../consents/address-answers.ts'
import { eraseAddressesSql, keepErasedAnswersSql } from '../consents/address-answers-sql.ts'
import { type ConsentBody, canBeAnswered } from '../consents/answers.ts'
import {
  type AddressEvents,
  type EventMark,
  isRecorded,
  isSuppressed,
  type Suppression,
  suppressionOf,
  withEvent,
} from '../consents/deliverability-state.ts'
import type { Context } from '../db/context.ts'
import type { StoredRow } from '../entities/entity-row.ts'
import { emailKey } from '../entities/match-keys.ts'
import { buildNotice } from '../entities/write/decide/decide.ts'
import { erasableText } from '../entities/write/decide/erasable-values.ts'
import { readRowsSql } from '../entities/write/load/load-sql.ts'
import { writeWithin } from '../entities/write/run.ts'
import { storeChanges } from '../entities/write/store/store.ts'
import type { WriteLimits } from '../entities/write/write.ts'
import { newWrite } from '../entities/write-request.ts'
import { type ChangeCall, type Changed, changeOrganization, type Locked } from '../organizations/change-organization.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import type { Shown } from '../route/shown.ts'
import { type Channel, channels, channelTable } from '../values/channels.ts'
import { pointer, refuse } from '../values/errors.ts'
import { formats } from '../values/formats.ts'
import { utcTime } from '../values/instant.ts'
import { mobileKey } from '../values/phone-numbers.ts'
import type { EventStatus, GivenEvent } from './schema.ts'
import { deleteAddressesSql, insertAddresses, readAddressesOfSql, readAddressesSql, readHoldersSql } from './sql.ts'

/**
 * An event with a valid address. `key` is the address in the format of a person's key, `index` is the event's place in
 * the request, and `value` is the text that is hashed, such as `email:ada@example.com`.
 */
type AddressedEvent = {
  index: number
  channel: Channel
  key: string
  value: string
  type: GivenEvent['type'] | 'lifted'
  mark: EventMark
  /** Whether the event was sent without a time. That of its mark is the time of the request. */
  isUndated?: boolean
  consent_type_id?: number | undefined
}

/** An address with its events before and after the request. */
type Address = Pick<AddressedEvent, 'channel' | 'key' | 'value'> & {
  hash: string
  /** The location of its row. Null if it has none. */
  ctid: string | null
  people: readonly string[]
  isErased: boolean
  /** The number of days for which a bounce suppresses the address. */
  days: number
  before: AddressEvents
  after: AddressEvents
}

/** `shown` notes who has the addresses that change, for the access log. The request of a provider has no caller to log. */
type RecordCall = ChangeCall & { limits: WriteLimits; shown?: Shown }

/**
 * Records events of mail providers in one transaction: the state of each address, the consent answers that follow, and
 * a change of each person whose address becomes suppressed or deliverable. `begin` runs first, under the lock. Returns
 * a status for each event.
 */
export function recordEvents(
  context: Context,
  call: RecordCall,
  events: readonly GivenEvent[],
  begin?: (locked: Locked) => Promise<void>,
): Promise<EventStatus[]> {
  return changeOrganization<EventStatus[]>(context, call, async locked => {
    await begin?.(locked)
    const statuses = events.map((): EventStatus => 'unchanged')
    const addressed = await readAddressed(locked, events, statuses)
    return { ...(await storeEvents(locked, call, addressed, statuses)), result: statuses }
  })
}

/** Lifts the suppression of an address. Returns whether there was one to lift. */
export function liftSuppression(context: Context, call: RecordCall, channel: Channel, address: string) {
  return changeOrganization<boolean>(context, call, async locked => {
    const key = addressKey(channel, address, locked.definitions.default_country)
    const statuses: EventStatus[] = []
    const lifted = { index: 0, channel, type: 'lifted' as const, mark: { at: locked.at } }
    const events = key === null ? [] : [{ ...lifted, key, value: hashedValue(channel, key) }]
    const stored = await storeEvents(locked, call, events, statuses)
    return { ...stored, result: statuses.length > 0 }
  })
}

/** The address on a channel in the format of a person's key. Null for a text that is no address. */
function addressKey(channel: Channel, address: string, country: string | null): string | null {
  const text = address.trim()
  if (channelTable[channel].key === 'mobile_key') return mobileKey(null, text, country)
  return formats.email!.holds(text) ? emailKey(text) : null
}

const hashedValue = (channel: Channel, key: string): string =>
  erasableText(channelTable[channel].key === 'mobile_key' ? 'mobile' : 'email', key)

/** Throws a Fault of 400 unless each event names one address. Only an unsubscription may name a purpose. */
export function checkEvents(events: readonly GivenEvent[]): void {
  const details = events.flatMap(({ address, external_id, type, consent_type_id }, index) => {
    if ((address === undefined) === (external_id === undefined))
      return [{ path: pointer('events', index), message: 'must have either `address` or `external_id`' }]
    if (consent_type_id !== undefined && type !== 'unsubscribe')
      return [{ path: pointer('events', index, 'consent_type_id'), message: 'is for an `unsubscribe` only' }]
    return []
  })
  if (details.length > 0) refuse('invalid_parameter', 'The request breaks a rule.', { details })
}

/** Returns the events with a valid address, and sets the status of the others. */
async function readAddressed(
  { tx, organization_id, definitions, at }: Locked,
  events: readonly GivenEvent[],
  statuses: EventStatus[],
): Promise<AddressedEvent[]> {
  type Found = { name: string } & Record<(typeof channelTable)[Channel]['key'], string | null>
  const names = new Set(events.flatMap(({ external_id }) => external_id ?? []))
  const found = names.size === 0 ? [] : await tx.query<Found>(readAddressesOfSql, [organization_id, [...names]])
  const byName = new Map(found.map(row => [row.name, row]))
  return events.flatMap((event, index) => {
    const { channel, address, external_id = '', type, provider, reference, consent_type_id } = event
    const person = byName.get(external_id)
    const key =
      address === undefined
        ? person?.[channelTable[channel].key]
        : addressKey(channel, address, definitions.default_country)
    if (typeof key !== 'string') {
      statuses[index] = address !== undefined ? 'not_an_address' : person ? 'no_address' : 'not_found'
      return []
    }
    if (consent_type_id !== undefined && purposesOf(definitions, channel, consent_type_id).length === 0) {
      statuses[index] = 'no_purpose'
      return []
    }
    const mark = {
      at: event.at === undefined ? at : utcTime(event.at),
      ...(provider !== undefined && { provider }),
      ...(reference !== undefined && { reference }),
    }
    const isUndated = event.at === undefined
    return [{ index, channel, key, value: hashedValue(channel, key), type, mark, isUndated, consent_type_id }]
  })
}

const purposesOf = ({ consent_types }: Definitions, channel: Channel, id?: number) =>
  consent_types.filter(type => canBeAnswered(type, channel) && (id ?? type.id) === type.id)

/** Stores events in their order, and sets the status of each event that changes data. */
async function storeEvents(
  locked: Locked,
  call: RecordCall,
  events: readonly AddressedEvent[],
  statuses: EventStatus[],
): Promise<Omit<Changed<unknown>, 'result'>> {
  if (events.length === 0) return { changes: [] }
  const { tx, definitions, at } = locked
  const { actor, request_id, limits } = call
  const addresses = await readStates(locked, events)
  const refusing: { index: number; id: string; body: ConsentBody }[] = []
  for (const event of events) {
    const { index, type, mark, isUndated, value } = event
    const address = addresses.get(value)!
    if (type === 'lifted' && !suppressionOf(address.after, address.days)) continue
    if (type !== 'unsubscribe') {
      if (isUndated && type !== 'lifted' && isRecorded(address.after, type, mark)) continue
      const next = withEvent(address.after, type, mark)
      if (next !== address.after) statuses[index] = 'stored'
      address.after = next
    }
    if (type !== 'unsubscribe' && type !== 'complaint') continue
    const body = refusalOf(event, definitions)
    if (address.people.length === 0 && (await refuseForAddress(locked, address, body))) statuses[index] = 'stored'
    for (const id of address.people) refusing.push({ index, id, body })
  }
  // An import ignores answers that the history already has, so a repeated event gives no second answer.
  const writes = refusing.map(({ id, body }) =>
    newWrite({ operation: 'import', stack_id: peopleStackId, address: { id }, body, actor, request_id }),
  )
  const outcomes = writes.length === 0 ? [] : await writeWithin(tx, definitions, writes, limits)
  const updated = outcomes.flatMap((outcome, n) =>
    'done' in outcome && outcome.done.result === 'updated' ? [{ ...outcome.done, index: refusing[n]!.index }] : [],
  )
  for (const { index } of updated) statuses[index] = 'stored'
  const changed = [...addresses.values()].filter(({ before, after }) => before !== after)
  call.shown?.addAll(peopleStackId, [...refusing.map(({ id }) => id), ...changed.flatMap(({ people }) => people)])
  for (const { people } of changed) if (people.length === 0) call.shown?.addUnlisted(peopleStackId)
  const statements = storeAddresses(locked, changed)
  const sequence = (await logStates(locked, call, changed, at)) ?? updated.at(-1)?.sequence
  return sequence === undefined ? { statements, changes: [] } : { statements, sequence }
}

async function readStates({ tx, organization_id }: Locked, events: readonly AddressedEvent[]) {
  const asked = new Map(events.map(event => [event.value, event]))
  type State = Pick<Address, 'value' | 'hash' | 'ctid' | 'isErased' | 'days'> & { events: AddressEvents | null }
  const keys = channels.map(channel => [...asked.values()].flatMap(each => (each.channel === channel ? each.key : [])))
  const [states, holders] = await Promise.all([
    tx.query<State>(readAddressesSql, [organization_id, [...asked.keys()]]),
    tx.query<{ channel: Channel; key: string; id: string }>(readHoldersSql, [organization_id, ...keys]),
  ])
  const people = Map.groupBy(holders, ({ channel, key }) => hashedValue(channel, key))
  return new Map(
    states.map(({ events, ...state }): [string, Address] => {
      const { channel, key } = asked.get(state.value)!
      const ids = people.get(state.value)?.map(({ id }) => id) ?? []
      return [state.value, { ...state, channel, key, people: ids, before: events ?? {}, after: events ?? {} }]
    }),
  )
}

/** Replaces the rows of addresses. */
function storeAddresses({ tx, organization_id }: Locked, addresses: readonly Address[]): Promise<unknown>[] {
  if (addresses.length === 0) return []
  const known = addresses.filter(({ ctid }) => ctid !== null)
  const places = [known.map(({ ctid }) => ctid), known.map(({ hash }) => hash)]
  const rows = addresses.map(address => ({ organization_id, ...rowOfAddress(address) }))
  return [
    ...(known.length > 0 ? [tx.query(deleteAddressesSql, [organization_id, ...places])] : []),
    tx.append(insertAddresses, rows),
  ]
}

/** The row of an address. If only erased people had the address, kith keeps its hash alone. */
function rowOfAddress({ channel, key, hash, people, isErased, after, days }: Address) {
  const suppression = suppressionOf(after, days)
  return {
    channel,
    hash: `\\x${hash}`,
    address: isErased && people.length === 0 ? null : key,
    events: after,
    reason: suppression?.reason ?? null,
    suppressed_from: suppression?.from ?? null,
    suppressed_until: suppression ? (suppression.until ?? 'infinity') : null,
  }
}

/**
 * Logs a change of each person whose address becomes suppressed or deliverable. Returns the number of the last change.
 */
async function logStates(
  { tx, organization_id, definitions }: Locked,
  { actor, request_id }: RecordCall,
  changed: readonly Address[],
  at: string,
): Promise<number | undefined> {
  const told = changed.flatMap(({ channel, people, days, before, after }) => {
    if (people.length === 0) return []
    const [was, is] = [before, after].map(events => loggedState(channel, suppressionOf(events, days), at))
    return was!.state === is!.state ? [] : people.map(id => ({ id, before: was!, after: is! }))
  })
  if (told.length === 0) return undefined
  const byPerson = Map.groupBy(told, ({ id }) => id)
  const asked = [...byPerson.keys()].map(id => ({ stack_id: peopleStackId, id }))
  const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, JSON.stringify(asked)])
  const changes = rows.map(row => {
    const states = byPerson.get(row.id)!
    const before = { deliverability: states.map(({ before }) => before) }
    const after = { deliverability: states.map(({ after }) => after) }
    return { stack_id: peopleStackId, row, change: buildNotice(row, { operation: 'update', before, after }) }
  })
  return storeChanges(tx, definitions, at, { actor, request_id }, changes)
}

function loggedState(channel: Channel, found: Suppression | undefined, at: string) {
  if (!found || !isSuppressed(found, at)) return { channel, state: 'deliverable' }
  const { reason, from, until } = found
  return { channel, state: 'suppressed', reason, from, until }
}

/**
 * The refusals that an event gives for each person with the address. Without purposes, it refuses the channel's flag.
 */
function refusalOf({ channel, type, mark, consent_type_id }: AddressedEvent, definitions: Definitions): ConsentBody {
  const { at, provider, reference } = mark
  const source = type === 'complaint' ? `complaint${provider === undefined ? '' : ` (${provider})`}` : provider
  const purposes = purposesOf(definitions, channel, consent_type_id)
  if (purposes.length === 0) return { [channelTable[channel].flag]: false }
  const evidence = {
    method: type === 'complaint' ? ('other' as const) : ('unsubscribe_link' as const),
    ...(source !== undefined && { source }),
    ...(reference !== undefined && { reference }),
  }
  const answer = { channel, state: false, collected_at: at, ...evidence }
  return { consents: purposes.map(({ id }) => ({ consent_type_id: id, ...answer })) }
}

/** Stores the answers of an address that no person has. Returns whether one of them is now in force. */
async function refuseForAddress(
  { tx, organization_id }: Locked,
  { channel, key, value, isErased }: Address,
  { consents }: ConsentBody,
): Promise<boolean> {
  const answers = (consents ?? []).map(({ consent_type_id, collected_at, method }) => ({
    ...{ consent_type_id, channel, address: key, person_id: null },
    answer: { state: false, answered_at: collected_at!, method: method!, sequence: 0 },
  }))
  if (answers.length === 0) return false
  const stored = await storeAddressAnswers(tx, organization_id, answers)
  if (isErased) {
    const erased = JSON.stringify({ people: [], values: [value] })
    await tx.query(keepErasedAnswersSql, [organization_id, erased])
    await tx.query(eraseAddressesSql, [organization_id, erased])
  }
  return stored.length > 0
}
