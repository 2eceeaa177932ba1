import { peopleStackId } from '../organizations/definitions.ts'
import { type Condition, otherEndOf } from './grammar.ts'

export type ReadScope = 'people:read' | 'records:read'

/** The scope that reads the entities of a stack. */
export const readScopeOf = (stack_id: number): ReadScope =>
  stack_id === peopleStackId ? 'people:read' : 'records:read'

/** The read scopes that a filter needs: one for each kind of entity that it uses. */
export function scopesOf(condition: Condition, stack_id: number): Set<ReadScope> {
  const own = new Set([readScopeOf(stack_id)])
  if (condition.kind === 'related' || condition.kind === 'measured')
    return own.union(scopesOf(condition.condition, otherEndOf(condition)))
  if (condition.kind === 'not') return own.union(scopesOf(condition.condition, stack_id))
  if (condition.kind !== 'all' && condition.kind !== 'any') return own
  return condition.conditions.reduce((scopes, inner) => scopes.union(scopesOf(inner, stack_id)), own)
}
