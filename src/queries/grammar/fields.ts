import { sortFieldNames, sortFieldOf } from '../../entities/indexes/sort-field.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import type { Field } from './grammar.ts'

const identifierOf = (stack_id: number) => (stack_id === peopleStackId ? 'id' : 'record_id')

/** The names of the fields of an entity that are no attributes. */
export const fieldNamesOf = (stack_id: number): string[] => [
  ...sortFieldNames(stack_id),
  'state',
  identifierOf(stack_id),
]

/** The field with that name, or undefined: one that sorts, the state, or the internal identifier, which neither sorts. */
export function fieldOf(name: string, stack_id: number): Field | undefined {
  if (name === 'state') return { kind: name }
  const identifier = identifierOf(stack_id)
  return name === identifier ? { kind: identifier } : sortFieldOf(name, stack_id)
}
