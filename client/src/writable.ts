import type { Person, PersonBody, RecordBody, StackRecord } from './wire.ts'

type Values = Record<string, unknown>

// A list that shows null is refused by the service, never stored with less in it.
type Named<V> = { [K in keyof V]: V[K] extends readonly (infer E)[] | undefined ? NonNullable<E>[] : NonNullable<V[K]> }

/**
 * What was read, as a body that can be written back: without what only a read has. Of the consents it keeps the
 * answers, for a default is none, and leaves out the summary flags, which follow from them. Attribute values that
 * are null go too: they show a link to somebody without an external identifier, which a patch keeps by not naming it;
 * a replacement, or a list that holds one, cannot write such a link.
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
  attribute_values: Named<P['attribute_values']>
}
export function writable<R extends Omit<StackRecord, 'attribute_values'> & { attribute_values: Values }>(
  record: R,
): Omit<Required<RecordBody>, 'attribute_values'> & { attribute_values: Named<R['attribute_values']> }
export function writable(read: Person | StackRecord): PersonBody | RecordBody {
  if (!('consents' in read)) {
    const { record_id, stack_key, state, version, created_at, updated_at, ...body } = read
    return { ...body, attribute_values: withoutNulls(body.attribute_values) }
  }
  const { id, state, version, created_at, updated_at, email_consent, sms_consent, ...body } = read
  const answers = body.consents.filter(({ source }) => source === 'answer')
  const consents = answers.map(({ consent_type_id, channel, state }) => ({ consent_type_id, channel, state }))
  return { ...body, consents, attribute_values: withoutNulls(body.attribute_values) }
}

function withoutNulls(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
}
