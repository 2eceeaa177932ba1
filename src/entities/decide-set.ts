import type { Item } from './conflicts.ts'
import { type Decision, type DecisionContext, decide } from './decide.ts'
import type { CurrentState } from './entity-row.ts'
import { newEntityId } from './identifiers.ts'
import type { DeletedEntity } from './past-state.ts'
import { type Name, nameKey } from './plan-write.ts'

/** The inputs of the decisions of a set. */
export type SetContext = Omit<DecisionContext, 'newId' | 'deleted'> & {
  currentState: (item: Item) => CurrentState | null
  deletedEntity: (item: Item) => DeletedEntity | undefined
}

/**
 * Decides the items of a set independently. An import may link to an entity that another import of the set creates. If
 * that creation is refused, the imports that link to it are decided again without it.
 */
export function decideSet(set: Item[], context: SetContext): Map<Item, Decision> {
  const { currentState, deletedEntity, definitions, at, limits, idByExternalId, lastVersionOf } = context
  const ids = new Map<string, string>()
  for (const item of set)
    if (item.name !== undefined && item.write.operation === 'import' && !currentState(item))
      ids.set(item.name, newEntityId(item.write.stack_id))
  const resolveName = ids.size === 0 ? idByExternalId : (name: Name) => idByExternalId(name) ?? ids.get(nameKey(name))
  const decideOne = (item: Item) => {
    const { write, plan, name } = item
    const newId = () => (name && ids.get(name)) ?? newEntityId(write.stack_id)
    return decide(currentState(item), write, plan, {
      definitions,
      at,
      limits,
      idByExternalId: resolveName,
      lastVersionOf,
      newId,
      deleted: deletedEntity(item),
    })
  }
  const decisions = new Map<Item, Decision>()
  for (const item of set) decisions.set(item, decideOne(item))
  if (ids.size > 0) redecideLinking(decisions, ids, decideOne)
  return decisions
}

function redecideLinking(
  decisions: Map<Item, Decision>,
  ids: Map<string, string>,
  decideOne: (item: Item) => Decision,
) {
  const refused: Item[] = []
  for (const [item, decision] of decisions) if ('refusal' in decision) refused.push(item)
  if (refused.length === 0) return
  const linkingItems = itemsByTarget(decisions.keys())
  for (let item = refused.pop(); item; item = refused.pop()) {
    const { name } = item
    if (name === undefined || !ids.delete(name)) continue
    for (const other of linkingItems.get(name) ?? []) {
      if ('refusal' in decisions.get(other)!) continue
      const decision = decideOne(other)
      decisions.set(other, decision)
      if ('refusal' in decision) refused.push(other)
    }
  }
}

/** Groups the items by the names that they link to. */
function itemsByTarget(items: Iterable<Item>): Map<string, Set<Item>> {
  const byTarget = new Map<string, Set<Item>>()
  for (const item of items)
    for (const { names } of item.plan.links.values())
      for (const name of names) {
        const linkingItems = byTarget.get(nameKey(name)) ?? new Set()
        byTarget.set(nameKey(name), linkingItems.add(item))
      }
  return byTarget
}
