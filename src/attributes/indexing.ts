import type { Database } from '../db/db.ts'
import {
  type Attribute,
  currentDefinitions,
  type Definitions,
  reloadDefinitions,
} from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'

type Indexable = Pick<Attribute, 'indexed' | 'target_stack_id' | 'state' | 'index'>

/**
 * The id of an attribute's index after a change of definitions: its previous index, a new one, or null. A relationship has
 * an index for plain values stored under its key before it was declared. A new index takes the number of the new version,
 * which is unique.
 */
export function indexIdOf(current: Definitions, { indexed, target_stack_id, state, index }: Indexable): number | null {
  if (state !== 'active' || !(indexed || target_stack_id !== null)) return null
  return index?.id ?? current.version + 1
}

/** The progress of an attribute's index: `indexed` of about `total` entities. Null if the attribute is not to be indexed. */
export function indexState({ indexed, index }: Attribute) {
  if (!indexed || !index) return null
  const { ready, total } = index
  const done = ready ? total : Math.min(index.indexed, total)
  return { state: ready ? ('ready' as const) : ('filling' as const), indexed: done, total }
}

/** The current definitions. They are read again while an index is filling, because its progress has no version. */
export async function definitionsWithProgress(
  db: Database,
  organization_id: number,
  signal?: Signal,
): Promise<Definitions> {
  const definitions = await currentDefinitions(db, organization_id, signal)
  const filling = definitions.attributes.some(({ index }) => index && !index.ready)
  return filling ? reloadDefinitions(db, organization_id, signal) : definitions
}
