import { storeAddressAnswers } from '../consents/address-answers.ts'
import { eraseAddressesSql, keepErasedAnswersSql } from '../consents/address-answers-sql.ts'
import { answerKey, type ConsentAssignment, type ConsentBody, canBeAnswered } from '../consents/answers.ts'
import {
  type AddressEvents,
  type EventMark,
  isSuppressed,
  type Suppression,
  suppressionOf,
  withEvent,
} from '../consents/deliverability-state.ts'
import type { Context } from '../db/context.ts'
import { awaitPipelined } from '../db/db.ts'
import type { Columns, StoredRow } from '../entities/entity-row.ts'
import { decideAnswers } from '../entities/write/decide/answers.ts'
import { buildFill, type Change, type DecisionLimits } from '../entities/write/decide/decide.ts'
import { readKnownAnswers } from '../entities/write/load/load.ts'
import { readRowsSql } from '../entities/write/load/load-sql.ts'
import { type PlannedChange, storeChanges } from '../entities/write/store/store.ts'
import { newWrite, type Write } from '../entities/write-request.ts'
import { type Author, type ChangeCall, changeOrganization, type Locked } from '../organizations/change-organization.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { type Channel, channels, channelTable } from '../values/channels.ts'
import { pointer, refuse } from '../values/errors.ts'
import { utcTime } from '../values/instant.ts'
import { addressKey, hashedValue } from './addresses.ts'
import type { EventStatus, GivenEvent } from './schema.ts'
import {
  readAddressesOfSql,
  readAddressesSql,
  readPeopleWithSql,
  readSuppressionDaysSql,
  storeAddressesSql,
} from './sql.ts'

/** An event whose address is known. `index` is its place in the request, `value` the address as its hash is made of it. */
type AddressedEvent = {
  index: number
  channel: Channel
  key: string
  value: string
  type: GivenEvent['type'] | 'lifted'
  mark: EventMark
  consent_type_id: number | undefined
}

/** An address with what was stored of it, and what is. */
type Address = {
  channel: Channel
  key: string
  value: string
  people: readonly string[]
  isErased: boolean
  before: AddressEvents
  after: AddressEvents
}

/** What a person whose address an event concerns refuses by it. */
type Refusing = { index: number; body: ConsentBody; keys: readonly string[] }

type RecordCall = ChangeCall & { limits: DecisionLimits }

/**
 * Records what mail providers tell of addresses, in one transaction: the state of each address, the consent answers that follow, and a change of
 * each person whose address is suppressed from now on, or no longer. `begin` runs first, under the lock. Returns a status for each event.
 */
export function recordEvents(
  context: Context,
  call: RecordCall,
  events: readonly GivenEvent[],
  begin: (locked: Locked) => Promise<void> = async () => {},
): Promise<EventStatus[]> {
  return changeOrganization<EventStatus[]>(context, call, async locked => {
    await begin(locked)
    const statuses: EventStatus[] = events.map(() => 'unchanged')
    const addressed = await readAddressed(locked, events, statuses)
    const stored = await storeEvents(locked, call, addressed, index => {
      statuses[index] = 'stored'
    })
    return { ...stored, result: statuses }
  })
}

/** Lifts the suppression of an address. Returns whether there was anything to lift. */
export function liftSuppression(
  context: Context,
  call: RecordCall,
  channel: Channel,
  address: string,
): Promise<boolean> {
  return changeOrganization<boolean>(context, call, async locked => {
    const { definitions, at } = locked
    const key = addressKey(channel, address, definitions.default_country)
    if (key === null) return { changes: [], result: false }
    const value = hashedValue(channel, key)
    const event = { index: 0, channel, key, value, type: 'lifted', mark: { at }, consent_type_id: undefined } as const
    let isLifted = false
    const { addresses, days } = await readStates(locked, [event])
    if (!suppressionOf(addresses.get(value)!.before, days)) return { changes: [], result: false }
    const stored = await storeEvents(locked, call, [event], () => {
      isLifted = true
    })
    return { ...stored, result: isLifted }
  })
}

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

/** The events with their addresses. The status of an event without one is set. */
async function readAddressed(
  { tx, organization_id, definitions, at }: Locked,
  events: readonly GivenEvent[],
  statuses: EventStatus[],
): Promise<AddressedEvent[]> {
  type Found = { name: string } & Record<(typeof channelTable)[Channel]['key'], string | null>
  const names = [
    ...new Set(events.flatMap(({ address, external_id }) => (address === undefined ? (external_id ?? []) : []))),
  ]
  const found = names.length === 0 ? [] : await tx.query<Found>(readAddressesOfSql, [organization_id, names])
  const byName = new Map(found.map(row => [row.name, row]))
  return events.flatMap((event, index) => {
    const { channel, address, external_id = '', type, provider, reference, consent_type_id } = event
    const refuse = (status: EventStatus): [] => {
      statuses[index] = status
      return []
    }
    let key: string | null
    if (address === undefined) {
      const person = byName.get(external_id)
      if (!person) return refuse('not_found')
      key = person[channelTable[channel].key]
      if (key === null) return refuse('no_address')
    } else {
      key = addressKey(channel, address, definitions.default_country)
      if (key === null) return refuse('not_an_address')
    }
    if (consent_type_id !== undefined && purposesOf(definitions, channel, consent_type_id).length === 0)
      return refuse('no_purpose')
    const mark = {
      at: event.at === undefined ? at : utcTime(event.at),
      ...(provider !== undefined && { provider }),
      ...(reference !== undefined && { reference }),
    }
    return [{ index, channel, key, value: hashedValue(channel, key), type, mark, consent_type_id }]
  })
}

const purposesOf = ({ consent_types }: Definitions, channel: Channel, id?: number) =>
  consent_types.filter(type => canBeAnswered(type, channel) && (id ?? type.id) === type.id)

type StoredEvents = { statements: readonly Promise<unknown>[]; sequence?: number; changes?: [] }

async function storeEvents(
  locked: Locked,
  call: RecordCall,
  events: readonly AddressedEvent[],
  noteStored: (index: number) => void,
): Promise<StoredEvents> {
  if (events.length === 0) return { statements: [], changes: [] }
  const { tx, organization_id, definitions, at } = locked
  const { addresses, days } = await readStates(locked, events)
  const refusing = new Map<string, Refusing[]>()
  for (const event of events) {
    const { index, value, type, mark } = event
    const address = addresses.get(value)!
    if (type !== 'unsubscribe') {
      const next = withEvent(address.after, type, mark)
      if (next !== address.after) noteStored(index)
      address.after = next
    }
    if (type !== 'unsubscribe' && type !== 'complaint') continue
    const refusal = refusalOf(event, definitions)
    if (address.people.length === 0 && (await refuseForAddress(locked, address, refusal))) noteStored(index)
    for (const id of address.people) refusing.set(id, [...(refusing.get(id) ?? []), refusal])
  }
  const changed = [...addresses.values()].filter(({ before, after }) => before !== after)
  const stored = changed.map(address => rowOfAddress(address, days))
  const statements = stored.length === 0 ? [] : [tx.query(storeAddressesSql, [organization_id, JSON.stringify(stored)])]
  const flips = new Map<string, Flip[]>()
  for (const address of changed) {
    const flip = flipOf(address, days, at)
    if (flip) for (const id of address.people) flips.set(id, [...(flips.get(id) ?? []), flip])
  }
  const sequence = await storePeople(locked, call, { refusing, flips }, noteStored)
  return sequence === undefined ? { statements, changes: [] } : { statements, sequence }
}

async function readStates(
  { tx, organization_id }: Pick<Locked, 'tx' | 'organization_id'>,
  events: readonly Pick<AddressedEvent, 'channel' | 'key' | 'value'>[],
): Promise<{ addresses: Map<string, Address>; days: number }> {
  const asked = new Map(events.map(event => [event.value, event]))
  const reading = tx.query<{ value: string; events: AddressEvents | null; is_erased: boolean }>(readAddressesSql, [
    organization_id,
    [...asked.keys()],
  ])
  const readingPeople = channels.map(async channel => {
    const keys = [...asked.values()].flatMap(each => (each.channel === channel ? [each.key] : []))
    if (keys.length === 0) return []
    const found = await tx.query<{ key: string; id: string }>(readPeopleWithSql[channel], [organization_id, keys])
    return found.map(({ key, id }) => ({ value: hashedValue(channel, key), id }))
  })
  const readingDays = tx.query<{ days: number }>(readSuppressionDaysSql, [organization_id])
  await awaitPipelined([reading, ...readingPeople, readingDays])
  const people = Map.groupBy((await Promise.all(readingPeople)).flat(), ({ value }) => value)
  const addresses = (await reading).map(({ value, events, is_erased }): [string, Address] => {
    const { channel, key } = asked.get(value)!
    const before = events ?? {}
    const ids = (people.get(value) ?? []).map(({ id }) => id)
    return [value, { channel, key, value, people: ids, isErased: is_erased, before, after: before }]
  })
  return { addresses: new Map(addresses), days: (await readingDays)[0]!.days }
}

/** The row of an address. Of one that only erased people had, kith keeps the hash alone. */
function rowOfAddress({ channel, key, value, people, isErased, after }: Address, days: number) {
  const suppression = suppressionOf(after, days)
  return {
    value,
    channel,
    address: isErased && people.length === 0 ? null : key,
    events: after,
    reason: suppression?.reason ?? null,
    suppressed_from: suppression?.from ?? null,
    suppressed_until: suppression ? (suppression.until ?? 'infinity') : null,
  }
}

/** What the change log tells of a person whose address is suppressed from now on, or no longer. */
type LoggedState =
  | { channel: Channel; state: 'deliverable' }
  | ({ channel: Channel; state: 'suppressed' } & Pick<Suppression, 'reason' | 'from' | 'until'>)
type Flip = { before: LoggedState; after: LoggedState }

function flipOf({ channel, before, after }: Address, days: number, at: string): Flip | undefined {
  const [was, is] = [suppressionOf(before, days), suppressionOf(after, days)]
  if (isSuppressed(was, at) === isSuppressed(is, at)) return undefined
  return { before: loggedState(channel, was, at), after: loggedState(channel, is, at) }
}

function loggedState(channel: Channel, found: Suppression | undefined, at: string): LoggedState {
  if (!found || !isSuppressed(found, at)) return { channel, state: 'deliverable' }
  const { reason, from, until } = found
  return { channel, state: 'suppressed', reason, from, until }
}

/** The answers that an event gives for everyone with the address. Without a purpose to refuse, the flag of the channel is refused. */
function refusalOf(
  { index, channel, type, mark, consent_type_id }: AddressedEvent,
  definitions: Definitions,
): Refusing {
  const { at, provider, reference } = mark
  const source = type === 'complaint' ? `complaint${provider === undefined ? '' : ` (${provider})`}` : provider
  const purposes = purposesOf(definitions, channel, consent_type_id)
  const consents = purposes.map(
    ({ id }): ConsentAssignment => ({
      consent_type_id: id,
      channel,
      state: false,
      collected_at: at,
      method: type === 'complaint' ? 'other' : 'unsubscribe_link',
      ...(source !== undefined && { source }),
      ...(reference !== undefined && { reference }),
    }),
  )
  if (purposes.length === 0) return { index, body: { [channelTable[channel].flag]: false }, keys: [channel] }
  return { index, body: { consents }, keys: purposes.map(({ id }) => answerKey(id, channel)) }
}

/** Stores the answers of an address that nobody has. Returns whether any of them stands now. */
async function refuseForAddress(
  { tx, organization_id }: Locked,
  { channel, key, value, isErased }: Address,
  { body }: Refusing,
): Promise<boolean> {
  const answers = (body.consents ?? []).map(({ consent_type_id, collected_at, method }) => ({
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

type Concerned = { refusing: ReadonlyMap<string, readonly Refusing[]>; flips: ReadonlyMap<string, readonly Flip[]> }

/**
 * Stores the changes of people. A person answers a purpose once in a change, so a second event about the same purpose is stored with a further
 * one. Returns the number of the last change; undefined if nothing changes.
 */
async function storePeople(
  locked: Locked,
  call: RecordCall,
  { refusing, flips }: Concerned,
  noteStored: (index: number) => void,
): Promise<number | undefined> {
  const ids = [...new Set([...refusing.keys(), ...flips.keys()])]
  if (ids.length === 0) return undefined
  const { tx, organization_id, definitions, at } = locked
  const author: Author = { actor: call.actor, request_id: call.request_id }
  const people = JSON.stringify(ids.map(id => ({ stack_id: peopleStackId, id })))
  const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, people])
  const later = new Map<string, Refusing[]>()
  const items = rows.map(row => {
    const { now, rest } = splitAnswers(refusing.get(row.id) ?? [])
    if (rest.length > 0) later.set(row.id, rest)
    return { row, refusing: now, write: writeOf(row, now, author) }
  })
  const rowById = new Map(items.map(item => [item.write, item.row]))
  const knownAnswers = await readKnownAnswers(tx, definitions, items, ({ write }) => rowById.get(write))
  const changes: PlannedChange[] = []
  for (const { row, refusing, write } of items) {
    const columns: Columns = {}
    const { answers, consents } = decideAnswers(row, write, { definitions, at, knownAnswers }, columns, [])
    const given = new Set(answers.map(({ consent_type_id, channel }) => answerKey(consent_type_id, channel)))
    const hasFlag = channels.filter(channel => columns[channelTable[channel].flag] !== undefined)
    for (const { index, keys } of refusing)
      if (keys.some(key => given.has(key) || (hasFlag as string[]).includes(key))) noteStored(index)
    const flipped = flips.get(row.id) ?? []
    if (Object.keys(columns).length === 0 && answers.length === 0 && flipped.length === 0) continue
    const fill = { plain: new Map(), links: [], columns, answers, ...(consents && { consents }) }
    const filled = buildFill({ row, links: new Map() }, fill, definitions, call.limits, row.version)
    if (filled && 'change' in filled)
      changes.push({ stack_id: peopleStackId, change: withFlips(filled.change, flipped), row })
  }
  const sequence = changes.length === 0 ? undefined : await storeChanges(tx, definitions, at, author, changes)
  const last =
    later.size === 0 ? undefined : await storePeople(locked, call, { refusing: later, flips: new Map() }, noteStored)
  return last ?? sequence
}

/** The first answer to each purpose, and the others. */
function splitAnswers(refusing: readonly Refusing[]): { now: Refusing[]; rest: Refusing[] } {
  const taken = new Set<string>()
  const [now, rest]: [Refusing[], Refusing[]] = [[], []]
  for (const each of refusing) {
    if (each.keys.some(key => taken.has(key))) rest.push(each)
    else now.push(each)
    for (const key of each.keys) taken.add(key)
  }
  return { now, rest }
}

/** An import ignores answers that the history has already, so the same event gives none the second time. */
function writeOf(row: StoredRow, refusing: readonly Refusing[], author: Author): Write {
  const consents = refusing.flatMap(({ body }) => body.consents ?? [])
  const flags = refusing.flatMap(({ body: { consents: _, ...flags } }) => flags)
  const body = Object.assign({}, ...flags, consents.length > 0 && { consents }) as ConsentBody
  return newWrite({ operation: 'import', stack_id: peopleStackId, address: { id: row.id }, body, ...author })
}

function withFlips(change: Change, flips: readonly Flip[]): Change {
  if (flips.length === 0) return change
  return {
    ...change,
    before: { ...change.before, deliverability: flips.map(({ before }) => before) },
    after: { ...change.after, deliverability: flips.map(({ after }) => after) },
  }
}
