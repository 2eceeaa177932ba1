import type { StoredKeys } from '../../../idempotency/kept-responses.ts'
import type { Refusal } from '../../../values/errors.ts'
import type { Links, StoredRow, Target } from '../../entity-row.ts'
import type { DeletedEntity } from '../../past/past-state.ts'
import type { KnownAnswers } from '../decide/answers.ts'
import { type Item, type Name, referenceKey } from '../plan.ts'
import type { Holders } from '../unique.ts'

/** The stored entities, links, versions and keys that items name. */
export type Loaded = {
  /** The items, addressed to the people that they recognize. */
  items: Item[]
  /** The refusals of the items that do not recognize exactly one person. */
  refused: ReadonlyMap<Item, Refusal>
  /** The ids of the entities that the items name, by {@link referenceKey}. */
  ids: ReadonlyMap<string, string>
  /** The rows of the entities that the items address, by id. */
  rows: ReadonlyMap<string, StoredRow>
  /** The entities that the items refer to by an alias or an internal identifier, by {@link referenceKey}. */
  otherwiseNamed: ReadonlyMap<string, Target>
  /** The links of the rows under the attributes that the items write, by id. */
  links: ReadonlyMap<string, Links>
  /** Returns the highest version at which an entity released this name; 0 if none did. */
  lastVersionOf: (name: Name) => number
  knownAnswers: KnownAnswers
  /** The deleted entities that restores bring back. */
  deleted: ReadonlyMap<Item, DeletedEntity>
  /** The stored responses under the Idempotency-Keys of the items, by the id of the key. */
  keys: StoredKeys
  /** Up to two entities that have each unique value that the items claim. */
  holders: Holders
  /**
   * The values that the items may give to a person and that belonged to an erased person. Undefined if no person was
   * erased.
   */
  erased: ReadonlySet<string> | undefined
}

/** The row that an item addresses. */
export function rowOf({ rows, ids }: Pick<Loaded, 'rows' | 'ids'>, { key }: Item): StoredRow | undefined {
  const id = key === undefined ? undefined : ids.get(key)
  return id === undefined ? undefined : rows.get(id)
}
