import { channels } from './vocabulary.ts'
import type { Person, PersonBody, RecordBody, StackRecord } from './wire.ts'

type Values = Record<string, unknown>

/**
 * Converts an entity into a body that can be written back, without the read-only fields. It keeps consent answers, with
 * their time, method and text. It omits defaults, grants that wait for their confirmation, and the summary flags, which
 * follow from the answers.
 *
 * ```ts
 * import { writable } from '@kith/client'
 *
 * const { external_id, ...copy } = writable(await client.people.get('ada'))
 * await client.people.create({ ...copy, external_id: 'copy of ada' })
 * console.log((await client.people.get('copy of ada')).last_name) // Lovelace
 * ```
 */
export function writable<P extends Omit<Person, 'attribute_values'> & { attribute_values: Values }>(
  person: P,
): Omit<Required<PersonBody>, 'attribute_values' | 'email_consent' | 'sms_consent'> & {
  attribute_values: P['attribute_values']
}
export function writable<R extends Omit<StackRecord, 'attribute_values'> & { attribute_values: Values }>(
  record: R,
): Omit<Required<RecordBody>, 'attribute_values'> & { attribute_values: R['attribute_values'] }
export function writable(read: Person | StackRecord): PersonBody | RecordBody {
  const { state, version, created_at, updated_at, as_of, label, relationship_labels, included, ...rest } = read as (
    | Person
    | StackRecord
  ) & { included?: unknown }
  if ('record_id' in rest) {
    const { record_id, stack_key, ...body } = rest
    return body
  }
  const { id, mobile_e164, ...writable } = rest
  // A written flag records an answer, so the body omits the flags of all channels, even of channels that this version
  // does not know.
  const body = omit(writable, summaryFlags)
  // The consents are absent if the role closes them.
  const answers = (body.consents ?? []).filter(({ source }) => source === 'answer')
  const consents = answers
    .filter(({ pending }) => !pending)
    .map(({ consent_type_id, channel, state, answered_at, undated, method, text_version }) => ({
      ...{ consent_type_id, channel, state },
      ...(undated ? { undated } : answered_at !== null && { collected_at: answered_at }),
      ...(method && { method }),
      ...(text_version && { text_version }),
    }))
  return { ...body, consents }
}

type SummaryFlag = (typeof channels)[keyof typeof channels]['flag']
const summaryFlags = Object.values(channels).map(({ flag }): SummaryFlag => flag)

const omit = <T extends object, K extends keyof T>(value: T, keys: readonly K[]): Omit<T, K> =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !(keys as readonly PropertyKey[]).includes(key))) as Omit<
    T,
    K
  >
