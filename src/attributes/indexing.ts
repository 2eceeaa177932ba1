import type { Context, Reading } from '../db/context.ts'
import {
  type Attribute,
  type AttributeIndex,
  currentDefinitions,
  type Definitions,
} from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { readProgressSql } from './sql.ts'

type Indexable = Pick<Attribute, 'indexed' | 'target_stack_id' | 'state' | 'index'>

/**
 * The id of an attribute's index after a change of definitions: its previous index, a new one, or null. A relationship
 * has an index for plain values stored under its key before it was declared. A new index takes the number of the
 * version of the change, which is unique.
 */
export function indexIdOf(version: number, { indexed, target_stack_id, state, index }: Indexable): number | null {
  if (state !== 'active' || !(indexed || target_stack_id !== null)) return null
  return index?.id ?? version
}

/** The progress of an attribute's index: `indexed` of about `total` entities. Null if the attribute needs no index. */
export function indexState({ indexed, index }: Attribute) {
  if (!indexed || !index) return null
  const { ready, total } = index
  const done = ready ? total : Math.min(index.indexed, total)
  return { state: ready ? ('ready' as const) : ('filling' as const), indexed: done, total }
}

/** The current definitions, with the progress of indexes that are being filled. Progress has no version. */
export async function definitionsWithProgress(context: Context, signal?: Signal): Promise<Definitions> {
  const definitions = await currentDefinitions(context, signal)
  const filling = definitions.attributes.flatMap(({ index }) => (index && !index.ready ? [index.id] : []))
  if (filling.length === 0) return definitions
  const progress = await readProgress(context, filling, signal)
  const attributes = definitions.attributes.map(attribute => {
    const { index } = attribute
    const read = index && !index.ready ? progress.get(index.id) : undefined
    return index && read ? { ...attribute, index: { ...index, ...read } } : attribute
  })
  return { ...definitions, attributes, attributeById: new Map(attributes.map(each => [each.id, each])) }
}

type Progress = Pick<AttributeIndex, 'indexed' | 'total'>

/** Reads the progress of the fills of indexes, by index. An index whose fill has not begun is absent. */
export async function readProgress(
  { db, organization_id }: Reading,
  ids: number[],
  signal?: Signal,
): Promise<ReadonlyMap<number, Progress>> {
  const rows = await db.query<Progress & { index_id: number }>(readProgressSql, [organization_id, ids], signal)
  return new Map(rows.map(({ index_id, ...progress }) => [index_id, progress]))
}
