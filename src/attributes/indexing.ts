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
 * The index an attribute has after a change of definitions: the one it had, a new one, or none. Relationships have one
 * for plain values that stood under their key before. The version that the change makes was never a version before,
 * so its number is new too.
 */
export function indexOf(standing: Definitions, { indexed, target_stack_id, state, index }: Indexable): number | null {
  if (state !== 'active' || !(indexed || target_stack_id !== null)) return null
  return index?.id ?? standing.version + 1
}

/** Where the index of an attribute stands: `indexed` of about `total` entities. Null where none was asked for. */
export function indexState({ indexed, index }: Attribute) {
  if (!indexed || !index) return null
  const { ready, total } = index
  const done = ready ? total : Math.min(index.indexed, total)
  return { state: ready ? ('ready' as const) : ('filling' as const), indexed: done, total }
}

/** The definitions as they stand now. Progress moves without a new version, so while one is filling they are read anew. */
export async function definitionsWithProgress(
  db: Database,
  organization_id: number,
  signal?: Signal,
): Promise<Definitions> {
  const definitions = await currentDefinitions(db, organization_id, signal)
  const filling = definitions.attributes.some(({ index }) => index && !index.ready)
  return filling ? reloadDefinitions(db, organization_id, signal) : definitions
}
