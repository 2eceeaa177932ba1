import { fail } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Condition } from './grammar.ts'

export type ReadScope = 'people:read' | 'records:read'

export const readScopeOf = (stack_id: number): ReadScope =>
  stack_id === peopleStackId ? 'people:read' : 'records:read'

/** The read scopes of every kind of entity that a filter looks at. */
export function scopesOf(condition: Condition, stack_id: number): Set<ReadScope> {
  const own = new Set([readScopeOf(stack_id)])
  if (condition.kind === 'related') return own.union(scopesOf(condition.of, condition.attribute.target_stack_id))
  if (condition.kind === 'not') return own.union(scopesOf(condition.of, stack_id))
  if (condition.kind !== 'all' && condition.kind !== 'any') return own
  return condition.of.reduce((scopes, one) => scopes.union(scopesOf(one, stack_id)), own)
}

/** Throws `forbidden`, as the pipeline does for a route's own scope, unless the token carries them all. */
export function requireScopes({ caller }: Pick<Call, 'caller'>, needed: Iterable<ReadScope>): void {
  for (const scope of needed)
    if (!caller.scopes.has(scope))
      fail('forbidden', `The token lacks the scope ${scope}.`, {
        headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
      })
}
