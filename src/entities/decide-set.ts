import type { Item } from './conflicts.ts'
import { type Circumstances, type Decision, decide } from './decide.ts'
import type { CurrentState } from './entity-row.ts'
import { newEntityId } from './identifiers.ts'
import { type Name, nameKey } from './plan-write.ts'

/** What the items of a set are decided on. */
export type SetCircumstances = Omit<Circumstances, 'newId'> & { standing: (item: Item) => CurrentState | null }

/**
 * Decides the items of a set, side by side. Imports may link to what others of the set make; should that be refused, those
 * who link to it are decided once more, without it.
 */
export function decideSet(set: Item[], circumstances: SetCircumstances): Map<Item, Decision> {
  const { standing, definitions, at, limits, bearer, leftAt } = circumstances
  const ids = new Map<string, string>()
  for (const item of set)
    if (item.name !== undefined && item.write.operation === 'import' && !standing(item))
      ids.set(item.name, newEntityId(item.write.stack_id))
  const bearerAmong = ids.size === 0 ? bearer : (name: Name) => bearer(name) ?? ids.get(nameKey(name))
  const decideOne = (item: Item) => {
    const { write, plan, name } = item
    const newId = () => (name && ids.get(name)) ?? newEntityId(write.stack_id)
    return decide(standing(item), write, plan, { definitions, at, limits, bearer: bearerAmong, leftAt, newId })
  }
  const decisions = new Map<Item, Decision>()
  for (const item of set) decisions.set(item, decideOne(item))
  if (ids.size > 0) decideAgain(decisions, ids, decideOne)
  return decisions
}

function decideAgain(decisions: Map<Item, Decision>, ids: Map<string, string>, decideOne: (item: Item) => Decision) {
  const refused: Item[] = []
  for (const [item, decision] of decisions) if ('refusal' in decision) refused.push(item)
  if (refused.length === 0) return
  const linking = linkingTo(decisions.keys())
  for (let item = refused.pop(); item; item = refused.pop()) {
    const { name } = item
    if (name === undefined || !ids.delete(name)) continue
    for (const other of linking.get(name) ?? []) {
      if ('refusal' in decisions.get(other)!) continue
      const decision = decideOne(other)
      decisions.set(other, decision)
      if ('refusal' in decision) refused.push(other)
    }
  }
}

/** The items that link to each name. */
function linkingTo(items: Iterable<Item>): Map<string, Set<Item>> {
  const found = new Map<string, Set<Item>>()
  for (const item of items)
    for (const { names } of item.plan.links.values())
      for (const name of names) {
        const linking = found.get(nameKey(name)) ?? new Set()
        found.set(nameKey(name), linking.add(item))
      }
  return found
}
