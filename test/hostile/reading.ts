import { isDeepStrictEqual } from 'node:util'
import { isListEdit } from '../../src/attributes/list-edit.ts'
import { plainColumns } from '../../src/values/profile-fields.ts'
import { trimStrings } from './texts.ts'

type Values = Record<string, unknown>

const relationships = new Map<string, 'one' | 'many'>([
  ['referrer', 'one'],
  ['mixed', 'one'],
  ['friends', 'many'],
  ['bought', 'many'],
  ['buyer', 'one'],
])

/** Relationships between people. Only these can link an entity to itself. */
const personRelationships = new Set(['referrer', 'mixed', 'friends'])

/** Returns what a read shows for a written relationship value; undefined if the value links no entity. */
function expectedLinks(value: unknown, cardinality: 'one' | 'many'): unknown {
  const names = (Array.isArray(value) ? value : [value]).flatMap(element => {
    const scalar = element?.external_id ?? element
    return scalar === null || scalar === '' ? [] : [String(scalar)]
  })
  if (names.length === 0) return undefined
  return cardinality === 'many' ? [...new Set(names)] : names[0]
}

/**
 * Returns the first difference between an entity as read and the body that was written; undefined if there is none. With
 * `isReplacement`, the write also clears all fields that the body leaves out, as PUT and create do.
 */
export function findMismatch(
  actual: Values,
  sent: Values,
  isReplacement: boolean,
  ownName?: string,
): string | undefined {
  const expected = trimStrings(sent) as Values
  for (const field of plainColumns) {
    if (!(field in actual) || (!(field in expected) && !isReplacement)) continue
    if (!isDeepStrictEqual(actual[field], expected[field] ?? null))
      return describeMismatch(field, actual[field], expected[field])
  }
  if (expected.external_id !== undefined && actual.external_id !== expected.external_id)
    return describeMismatch('external_id', actual.external_id, expected.external_id)
  return findConsentMismatch(actual, expected) ?? findValueMismatch(actual, expected, isReplacement, ownName)
}

function findConsentMismatch(actual: Values, { consents }: Values): string | undefined {
  const entries = (actual.consents ?? []) as Values[]
  for (const { consent_type_id, channel, state } of (consents ?? []) as Values[]) {
    const entry = entries.find(one => one.consent_type_id === consent_type_id && one.channel === channel)
    if (entry?.state !== state || entry?.source !== 'answer') return describeMismatch('consents', entry, state)
  }
  return undefined
}

function findValueMismatch(
  actual: Values,
  expected: Values,
  isReplacement: boolean,
  ownName?: string,
): string | undefined {
  const values = actual.attribute_values as Values
  const sent = (expected.attribute_values ?? {}) as Values
  const renamed = (name: unknown) => (ownName !== undefined && name === ownName ? actual.external_id : name)
  for (const [key, value] of Object.entries(sent)) {
    const cardinality = relationships.get(key)
    const actualValue = Object.hasOwn(values, key) ? values[key] : undefined
    if (cardinality && isListEdit(value)) {
      const [added, removed] = [value.$add ?? [], value.$remove ?? []].map(
        list => (expectedLinks(list, 'many') ?? []) as unknown[],
      ) as [unknown[], unknown[]]
      const linked = (actualValue ?? []) as unknown[]
      const isSelf = (name: unknown) => personRelationships.has(key) && name === ownName
      if (added.some(name => !linked.includes(isSelf(name) ? actual.external_id : name)))
        return describeMismatch(`attribute_values.${key}`, actualValue, value)
      if (removed.some(name => linked.includes(name)))
        return describeMismatch(`attribute_values.${key}`, actualValue, value)
      continue
    }
    let expectedValue = cardinality ? expectedLinks(value, cardinality) : (value ?? undefined)
    // In a write that renames its entity, the old and the new name both refer to it. A read shows the new one.
    if (cardinality === 'one' && personRelationships.has(key)) expectedValue = renamed(expectedValue)
    if (cardinality === 'many' && personRelationships.has(key))
      expectedValue = expectedValue && [...new Set((expectedValue as unknown[]).map(renamed))]
    if (!isDeepStrictEqual(actualValue, expectedValue))
      return describeMismatch(`attribute_values.${key}`, actualValue, expectedValue)
  }
  const others = Object.keys(values).filter(key => !Object.hasOwn(sent, key))
  if (isReplacement && others.length > 0) return describeMismatch('attribute_values', others, 'cleared')
  return undefined
}

const describeMismatch = (path: string, actual: unknown, expected: unknown) =>
  `${path} reads ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`
