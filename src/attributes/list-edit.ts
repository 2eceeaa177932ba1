import type { Attribute } from '../organizations/definitions.ts'
import type { PatternTime } from './pattern.ts'
import { ruleFault } from './rules.ts'
import { coerceValue, type ValueFault, valueFault } from './values.ts'

/**
 * The elements that a write adds to the list of an attribute with many values, and those that it removes. The others
 * stay.
 */
export class ListEdit {
  readonly added: readonly unknown[]
  readonly removed: readonly unknown[]
  /** Whether the list must keep at least one element. */
  readonly isRequired: boolean

  constructor(added: readonly unknown[], removed: readonly unknown[], isRequired = false) {
    this.added = added
    this.removed = removed
    this.isRequired = isRequired
  }

  /**
   * Returns the list after the edit. Kept elements keep their order. Added elements come last. Elements that the list
   * already has are not added.
   */
  applyTo(list: readonly unknown[]): unknown[] {
    const removed = new Set(this.removed.map(keyOf))
    const kept = list.filter(element => !removed.has(keyOf(element)))
    const keys = new Set(kept.map(keyOf))
    const added = this.added.filter(element => {
      const key = keyOf(element)
      return keys.has(key) ? false : keys.add(key)
    })
    return [...kept, ...added]
  }
}

const editKeys = ['$add', '$remove']

/** Whether a value edits single elements of a list, or links: `{"$add": …, "$remove": …}` with one or both members. */
export function isListEdit(value: unknown): value is { $add?: unknown; $remove?: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const keys = Object.keys(value)
  return keys.length > 0 && keys.every(key => editKeys.includes(key))
}

/** Canonical JSON: the same text for equal values, whatever the order of their keys. */
const keyOf = (value: unknown): string => JSON.stringify(value, sortKeys)

const sortKeys = (_: string, value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value

/**
 * Reads `{"$add": […], "$remove": […]}` for an attribute that is no relationship. Added elements are checked like those
 * of a whole list. Any value can be removed, because the list may be older than the attribute. Paths are relative to
 * the value.
 */
export function readListEdit(
  attribute: Attribute,
  { $add = [], $remove = [] }: { $add?: unknown; $remove?: unknown },
  { isText, time }: { isText: boolean; time: () => PatternTime },
): ListEdit | { fault: ValueFault } {
  for (const [key, list] of Object.entries({ $add, $remove }))
    if (!Array.isArray(list)) return { fault: { path: [key], message: 'must be an array of values' } }
  const [added, removed] = [$add, $remove].map(list => (isText ? coerceValue(attribute, list) : list)) as unknown[][]
  const fault = valueFault(attribute, added) ?? ruleFault(attribute, added, time)
  if (fault) return { fault: { ...fault, path: ['$add', ...fault.path] } }
  const removedKeys = new Set(removed!.map(keyOf))
  const both = added!.findIndex(element => removedKeys.has(keyOf(element)))
  if (both !== -1)
    return { fault: { path: ['$add', both], message: 'is in "$remove" as well. Name it in one of them' } }
  return new ListEdit(added!, removed!, attribute.required)
}

/** The edit of a list. With `isWhole`, the write has a whole list, and the import only adds its elements. */
export type GivenEdit = { edit: { $add?: unknown; $remove?: unknown }; isWhole: boolean }

/**
 * Returns the edit of a list that a value asks for, or undefined for a plain value. With `adds`, a list adds its
 * elements. Null and an empty text still clear the stored list.
 */
export function givenEdit(
  value: unknown,
  attribute: Pick<Attribute, 'cardinality'> | undefined,
  adds: boolean,
): GivenEdit | undefined {
  if (isListEdit(value)) return { edit: value, isWhole: false }
  if (!adds || attribute?.cardinality !== 'many' || !Array.isArray(value)) return undefined
  return { edit: { $add: value }, isWhole: true }
}
