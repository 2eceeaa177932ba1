import { peopleStackId } from '../../organizations/definitions.ts'
import { type Condition, visit } from './grammar.ts'

export type ReadScope = 'people:read' | 'records:read'

/** The scope that reads the entities of a stack. */
export const readScopeOf = (stack_id: number): ReadScope =>
  stack_id === peopleStackId ? 'people:read' : 'records:read'

/** The read scopes that a filter needs: one for each kind of entity that it uses. */
export function scopesOf(condition: Condition, stack_id: number): Set<ReadScope> {
  return new Set(visit(condition, stack_id).map(visited => readScopeOf(visited.stack_id)))
}
