import { addressedName, type Item } from './conflicts.ts'
import { type Circumstances, type Decision, decide } from './decide.ts'
import { newEntityId } from './identifiers.ts'
import { type Name, nameKey } from './plan.ts'
import type { Standing } from './row.ts'

/** What the items of a set are decided on. */
export type SetCircumstances = Omit<Circumstances, 'new_id'> & { standing: (item: Item) => Standing | null }

/**
 * Decides the items of a set, side by side. Imports may link to what others of the set make; should that be refused, those
 * who link to it are decided once more, without it.
 */
export function decideSet(set: Item[], circumstances: SetCircumstances): [Item, Decision][] {
  const { standing, definitions, at, limits, bearer } = circumstances
  const ids = new Map<string, string>()
  for (const item of set) {
    const name = item.write.operation === 'import' && addressedName(item.write)
    if (name && !standing(item)) ids.set(nameKey(name), newEntityId(name.stack_id))
  }
  const bearerAmong = ids.size === 0 ? bearer : (name: Name) => bearer(name) ?? ids.get(nameKey(name))
  const decideOne = (item: Item) => {
    const new_id = () => {
      const name = addressedName(item.write)
      return (name && ids.get(nameKey(name))) ?? newEntityId(item.write.stack_id)
    }
    return decide(standing(item), item.write, item.plan, { definitions, at, limits, bearer: bearerAmong, new_id })
  }
  const decisions = new Map(set.map(item => [item, decideOne(item)]))
  if (ids.size > 0) decideAgain(decisions, ids, decideOne)
  return [...decisions]
}

function decideAgain(decisions: Map<Item, Decision>, ids: Map<string, string>, decideOne: (item: Item) => Decision) {
  const refused = [...decisions].filter(([, decision]) => 'refusal' in decision).map(([item]) => item)
  if (refused.length === 0) return
  const linking = linkingTo(decisions.keys())
  for (let item = refused.pop(); item; item = refused.pop()) {
    const name = addressedName(item.write)
    if (!name || !ids.delete(nameKey(name))) continue
    for (const other of linking.get(nameKey(name)) ?? []) {
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
