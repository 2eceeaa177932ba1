import { type AddressDeliverability, type Change, type Channel, channels, type Suppression } from '@kith/client'
import type { Entity, Values } from '../entity/entities.ts'
import { isEqual } from '../entity/equal.ts'
import { isErasedTarget } from '../entity/fields.ts'

/** A value that a change set. `group` tells what `key` names. */
export type Difference = { group: 'field' | 'attribute'; key: string; before: unknown; after: unknown }

/** The answer to a purpose on a channel in a change. `state` is null before the first answer. */
export type LoggedAnswer = {
  consent_type_id: number
  channel: Channel
  state: boolean | null
  pending?: boolean
  answered_at?: string
  superseded?: { state: boolean; answered_at: string }
}

export type AnswerDifference = Pick<LoggedAnswer, 'consent_type_id' | 'channel'> & {
  before: LoggedAnswer | undefined
  after: LoggedAnswer | undefined
}

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const attributeValuesOf = (values: Values): Values => (isObject(values.attribute_values) ? values.attribute_values : {})

/** Members of a change that are no values, or are shown differently. */
const unlisted = new Set(['attribute_values', 'consents', 'deliverability', 'merged_into'])
/** Whether the state is the default. Only another one, such as placeholder, is shown. */
const isOrdinary = ({ key, before, after }: Difference) => key === 'state' && before === null && after === 'active'

type Sides = Pick<Change, 'before' | 'after'>

/** The members among `keys` that differ. A missing member is null. */
function compare(
  group: Difference['group'],
  old: Values,
  now: Values,
  keys: Iterable<string> = new Set([...Object.keys(now), ...Object.keys(old)]),
): Difference[] {
  return [...keys]
    .map(key => ({ group, key, before: old[key] ?? null, after: now[key] ?? null }))
    .filter(({ before, after }) => !isEqual(before, after))
}

/** The fields and attribute values that a change set, without those that stayed empty. */
export function differencesOf({ before, after }: Sides): Difference[] {
  const [old, now] = [before ?? {}, after ?? {}]
  const fields = compare('field', old, now).filter(({ key }) => !unlisted.has(key))
  const attributes = compare('attribute', attributeValuesOf(old), attributeValuesOf(now))
  return [...fields, ...attributes].filter(difference => !isOrdinary(difference))
}

/** The members of a list in one side of a change. */
const listIn = <Member>(side: Change['before'], name: string) =>
  (Array.isArray(side?.[name]) ? side[name] : []) as Member[]

/** The consent answers that a change recorded. */
export function answersOf({ before, after }: Sides): AnswerDifference[] {
  const byName = (side: Change['before']) =>
    new Map(listIn<LoggedAnswer>(side, 'consents').map(each => [`${each.consent_type_id} ${each.channel}`, each]))
  const [old, now] = [byName(before), byName(after)]
  return [...new Map([...old, ...now])].map(([name, { consent_type_id, channel }]) => ({
    consent_type_id,
    channel,
    before: old.get(name),
    after: now.get(name),
  }))
}

/** The deliverability of an address on a channel in a change. `reason` is the reason of a suppression. */
export type LoggedAddress = Pick<AddressDeliverability, 'channel' | 'state'> & Partial<Pick<Suppression, 'reason'>>

/** The addresses that a change suppresses or makes deliverable again. */
export function addressesOf({ before, after }: Sides) {
  const [old, now] = [before, after].map(side => listIn<LoggedAddress>(side, 'deliverability'))
  return now!.map(after => ({ before: old!.find(({ channel }) => channel === after.channel), after }))
}

/** The summary flags of all channels. They follow from the answers, and a written flag would record an answer. */
export const summaryFlags = Object.values(channels).map(({ flag }) => flag)

/**
 * Members of an entity or a change that no write sets: kith maintains them, or they follow from the person's answers.
 */
const unwritable = new Set([
  ...['id', 'record_id', 'stack_key', 'mobile_e164', 'state', 'version', 'created_at', 'updated_at', 'as_of'],
  ...['consents', ...summaryFlags, 'attribute_values', 'deliverability'],
])

/** The values that differ from an earlier state: `settable` values can be written, and `fixed` values cannot. */
export type Restoration = { settable: Difference[]; fixed: Difference[] }

/**
 * The values that a write must set to restore the values of `then`. Consent answers are not included, because only the
 * person answers. Links to erased targets cannot be written.
 */
export function valuesToRestore(now: Entity, then: Values): Restoration {
  const fields = Object.keys(then).filter(key => !unwritable.has(key))
  const attributes = compare('attribute', attributeValuesOf(now), attributeValuesOf(then))
  const all = [...compare('field', now, then, fields), ...attributes]
  const isSettable = ({ after }: Difference) => ![after].flat().some(isErasedTarget)
  return { settable: all.filter(isSettable), fixed: all.filter(difference => !isSettable(difference)) }
}

/** An entity as it would be without a change: its current values, with those from before the change. */
export function withoutChange(now: Entity, { before }: Pick<Change, 'before'>): Values {
  return { ...now, ...before, attribute_values: { ...now.attribute_values, ...attributeValuesOf(before ?? {}) } }
}

/** The body of the PATCH that writes the differences. */
export function bodyOf(differences: readonly Difference[]): Values {
  const group = (name: Difference['group']) =>
    Object.fromEntries(differences.filter(({ group }) => group === name).map(({ key, after }) => [key, after]))
  const attributeValues = group('attribute')
  return { ...group('field'), ...(Object.keys(attributeValues).length > 0 && { attribute_values: attributeValues }) }
}
