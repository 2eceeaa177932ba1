import { peopleStackId } from '../../organizations/definitions.ts'
import { accessOf, type Rights, requireReadable } from '../../route/field-rights.ts'
import { type Condition, visit } from './grammar.ts'

export type ReadScope = 'people:read' | 'records:read'

/** The scope that reads the entities of a stack. */
export const readScopeOf = (stack_id: number): ReadScope =>
  stack_id === peopleStackId ? 'people:read' : 'records:read'

/** The read scopes that a filter needs: one for each kind of entity that it uses. */
export function scopesOf(condition: Condition, stack_id: number): Set<ReadScope> {
  return new Set(visit(condition, stack_id).map(visited => readScopeOf(visited.stack_id)))
}

/** A field that a request names, at its place. */
export type NamedField = { stack_id: number; name: string; path: string }

/** Throws a Fault of 403 for a field that the role of the caller cannot read. */
export function requireNamed(caller: Rights, named: readonly NamedField[]): void {
  if (!caller.rights) return
  for (const { stack_id, name, path } of named) requireReadable(accessOf(caller, stack_id), name, path)
}
