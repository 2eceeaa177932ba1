import { isDeepStrictEqual } from 'node:util'
import { trimmed } from './texts.ts'

type Values = Record<string, unknown>

const relationships = new Map<string, 'one' | 'many'>([
  ['referrer', 'one'],
  ['mixed', 'one'],
  ['friends', 'many'],
  ['bought', 'many'],
  ['buyer', 'one'],
])

/** Relationships of people to people: the others never name their own entity. */
const amongPeople = new Set(['referrer', 'mixed', 'friends'])

const profile = ['first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number', 'date_of_birth', 'language']
const plainFields = [...profile, 'push_notification_consent']

/** What a read shows for the value a relationship was given; undefined where nobody is linked. */
function linked(value: unknown, cardinality: 'one' | 'many'): unknown {
  const names = (Array.isArray(value) ? value : [value]).flatMap(element => {
    const scalar = element?.external_id ?? element
    return scalar === null || scalar === '' ? [] : [String(scalar)]
  })
  if (names.length === 0) return undefined
  return cardinality === 'many' ? [...new Set(names)] : names[0]
}

/**
 * What is wrong with how a read shows what a request has given, or undefined. `whole`: what the request leaves out is
 * cleared, as PUT and create have it.
 */
export function misread(shown: Values, given: Values, whole: boolean, ownName?: string): string | undefined {
  const wanted = trimmed(given) as Values
  for (const field of plainFields) {
    if (!(field in shown) || (!(field in wanted) && !whole)) continue
    if (!isDeepStrictEqual(shown[field], wanted[field] ?? null)) return told(field, shown[field], wanted[field])
  }
  if (wanted.external_id !== undefined && shown.external_id !== wanted.external_id)
    return told('external_id', shown.external_id, wanted.external_id)
  return misreadConsents(shown, wanted) ?? misreadValues(shown, wanted, whole, ownName)
}

function misreadConsents(shown: Values, { consents }: Values): string | undefined {
  const entries = (shown.consents ?? []) as Values[]
  for (const { consent_type_id, channel, state } of (consents ?? []) as Values[]) {
    const entry = entries.find(one => one.consent_type_id === consent_type_id && one.channel === channel)
    if (entry?.state !== state || entry?.source !== 'answer') return told('consents', entry, state)
  }
  return undefined
}

function misreadValues(shown: Values, wanted: Values, whole: boolean, ownName?: string): string | undefined {
  const values = shown.attribute_values as Values
  const given = (wanted.attribute_values ?? {}) as Values
  const renamed = (name: unknown) => (ownName !== undefined && name === ownName ? shown.external_id : name)
  for (const [key, value] of Object.entries(given)) {
    const cardinality = relationships.get(key)
    const found = Object.hasOwn(values, key) ? values[key] : undefined
    let expected = cardinality ? linked(value, cardinality) : (value ?? undefined)
    // Within a write that renames its entity, both its names mean itself, and are shown as the new one.
    if (cardinality === 'one' && amongPeople.has(key)) expected = renamed(expected)
    if (cardinality === 'many' && amongPeople.has(key))
      expected = expected && [...new Set((expected as unknown[]).map(renamed))]
    if (!isDeepStrictEqual(found, expected)) return told(`attribute_values.${key}`, found, expected)
  }
  const others = Object.keys(values).filter(key => !Object.hasOwn(given, key))
  if (whole && others.length > 0) return told('attribute_values', others, 'cleared')
  return undefined
}

const told = (where: string, shown: unknown, wanted: unknown) =>
  `${where} reads ${JSON.stringify(shown)}, was given ${JSON.stringify(wanted)}`
