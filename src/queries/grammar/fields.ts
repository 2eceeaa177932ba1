import { sortFieldNames, sortFieldOf } from '../../entities/indexes/sort-field.ts'
import { type Definitions, isRelationship, peopleStackId, stackIdOf } from '../../organizations/definitions.ts'
import type { Field, RelationshipAttribute } from './grammar.ts'

const identifierOf = (stack_id: number) => (stack_id === peopleStackId ? 'id' : 'record_id')

/** The names of the fields of an entity, without its attributes. */
export const fieldNamesOf = (stack_id: number): string[] => [
  ...sortFieldNames(stack_id),
  'state',
  identifierOf(stack_id),
]

/**
 * Returns the field with that name: a sortable field, the state, or the internal identifier. The last two cannot sort.
 * Undefined for any other name.
 */
export function fieldOf(name: string, stack_id: number): Field | undefined {
  if (name === 'state') return { kind: name }
  const identifier = identifierOf(stack_id)
  return name === identifier ? { kind: identifier } : sortFieldOf(name, stack_id)
}

/**
 * The prefix of a field that means the entities that link here. `people` or a stack key and an attribute key follow.
 */
export const incomingPrefix = 'incoming.'

/** Returns the relationship that `name` means, the field without its prefix, or the reason why there is none. */
export function incomingAttribute(
  name: string,
  definitions: Definitions,
  stack_id: number,
): RelationshipAttribute | string {
  const [owner = '', ...rest] = name.split('.')
  const key = rest.join('.')
  const owner_stack_id = stackIdOf(definitions, owner)
  if (owner_stack_id === undefined || key === '')
    return `names nobody who links here: write incoming.<people or the key of a stack>.<the key of a relationship>`
  const attribute = definitions.declared.get(owner_stack_id)?.get(key)
  if (!attribute || !isRelationship(attribute)) return `${owner} has no relationship ${JSON.stringify(key)}`
  if (attribute.target_stack_id !== stack_id) return `the relationship ${key} of ${owner} does not lead to this kind`
  return attribute
}
