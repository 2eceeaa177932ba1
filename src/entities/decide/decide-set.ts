import type { Definitions } from '../../organizations/definitions.ts'
import type { CurrentState, EntityRow, Links, StoredRow, Target } from '../entity-row.ts'
import { newEntityId } from '../identifiers.ts'
import type { DeletedEntity } from '../past/past-state.ts'
import { addressKey, aliasOf, type Item, type Name, nameKey, newNameOf, referenceKey } from '../write/plan-write.ts'
import { type Change, type Decision, type DecisionContext, decide } from './decide.ts'

/** The stored state that the decisions of a set rest on. */
export type ReadState = {
  rows: ReadonlyMap<Item, StoredRow>
  /** The links of the written entities, by id. */
  links: ReadonlyMap<string, Links>
  /** The ids of the entities that the items refer to, by {@link referenceKey}. */
  idsByReference: ReadonlyMap<string, string>
  /** The entities that the items refer to by an alias or an internal identifier, by {@link referenceKey}. */
  otherwiseNamed: ReadonlyMap<string, Target>
  lastVersionOf: DecisionContext['lastVersionOf']
  knownAnswers: DecisionContext['knownAnswers']
  /** The deleted entities that restores bring back. */
  deleted: ReadonlyMap<Item, DeletedEntity>
  holders: DecisionContext['holders']
}

/** An item whose decision is a change. */
export type Accepted = { item: Item; change: Change }

/** A placeholder that a relationship creates. `item` is the first item that links to it. */
export type Placeholder = Name & { id: string; version: number; item: Item }

/** A decided set, for the stages that store and represent it. */
export type DecidedSet = {
  definitions: Definitions
  at: string
  rows: ReadonlyMap<Item, StoredRow>
  decisions: ReadonlyMap<Item, Decision>
  accepted: readonly Accepted[]
  /** The placeholders that the changes need, each once, by {@link nameKey}. */
  placeholders: ReadonlyMap<string, Placeholder>
}

/**
 * Decides the items of a set independently. An import may link to an entity that another import of the set creates. If
 * that creation is refused, the imports that link to it are decided again without it.
 */
export function decideSet(
  set: Item[],
  { rows, links, idsByReference, otherwiseNamed, lastVersionOf, knownAnswers, deleted, holders }: ReadState,
  given: Pick<DecisionContext, 'definitions' | 'limits' | 'at' | 'erased'>,
): DecidedSet {
  const newIds = new Map<string, string>()
  for (const item of set)
    if (item.name !== undefined && item.write.operation === 'import' && !rows.has(item))
      newIds.set(item.name, newEntityId(item.write.stack_id))
  const newNames = newNamesOf(set, rows)
  const context: DecisionContext = {
    ...given,
    otherwiseNamed,
    lastVersionOf,
    knownAnswers,
    holders,
    resolve: reference => {
      const key = referenceKey(reference)
      return idsByReference.get(key) ?? newIds.get(key)
    },
    idByNewName: newNames.size === 0 ? undefined : name => newNames.get(nameKey(name)),
    newId: write => newIds.get(addressKey(write) ?? '') ?? newEntityId(write.stack_id),
  }
  const decideOne = (item: Item) => {
    const current = currentStateOf(rows.get(item), links)
    const restored = deleted.get(item)
    return decide(current, item.write, item.plan, restored ? { ...context, deleted: restored } : context)
  }
  const decisions = new Map<Item, Decision>()
  for (const item of set) decisions.set(item, decideOne(item))
  if (newIds.size + newNames.size > 0) redecideLinking(decisions, [newIds, newNames], decideOne)
  const accepted: Accepted[] = []
  for (const [item, decision] of decisions) if ('change' in decision) accepted.push({ item, change: decision.change })
  const placeholders = placeholdersOf(accepted, lastVersionOf)
  return { definitions: given.definitions, at: given.at, rows, decisions, accepted, placeholders }
}

/** The ids of the people to whom imports give a name, which they recognize by email or phone. */
function newNamesOf(set: Item[], rows: ReadState['rows']): Map<string, string> {
  const ids = new Map<string, string>()
  for (const item of set) {
    const row = item.match && rows.get(item)
    if (!row) continue
    const name = newNameKey(item)
    if (name !== undefined) ids.set(name, row.id)
  }
  return ids
}

/** The name that an import gives to the entity that it creates or recognizes. */
function newNameKey({ name, write }: Item): string | undefined {
  if (name !== undefined) return name
  const newName = newNameOf(write) ?? aliasOf(write)
  return newName && nameKey(newName)
}

const currentStateOf = (row: EntityRow | undefined, links: ReadState['links']): CurrentState | null =>
  row ? { row, links: links.get(row.id) ?? noLinks } : null

const noLinks: Links = new Map()

function redecideLinking(
  decisions: Map<Item, Decision>,
  idsOfNewNames: Map<string, string>[],
  decideOne: (item: Item) => Decision,
) {
  const refused: Item[] = []
  for (const [item, decision] of decisions) if ('refusal' in decision) refused.push(item)
  if (refused.length === 0) return
  const linkingItems = itemsByTarget(decisions.keys())
  for (let item = refused.pop(); item; item = refused.pop()) {
    const name = newNameKey(item)
    if (name === undefined || !idsOfNewNames.some(ids => ids.delete(name))) continue
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
    for (const { references } of item.plan.links.values())
      for (const reference of references) {
        const linkingItems = byTarget.get(referenceKey(reference)) ?? new Set()
        byTarget.set(referenceKey(reference), linkingItems.add(item))
      }
  return byTarget
}

function placeholdersOf(
  accepted: readonly Accepted[],
  lastVersionOf: ReadState['lastVersionOf'],
): Map<string, Placeholder> {
  const placeholders = new Map<string, Placeholder>()
  for (const { item, change } of accepted)
    for (const { name } of change.missing)
      if (!placeholders.has(nameKey(name)))
        placeholders.set(nameKey(name), {
          ...name,
          id: newEntityId(name.stack_id),
          version: lastVersionOf(name) + 1,
          item,
        })
  return placeholders
}
