import { awaitPipelined, type Transaction } from '../../../db/db.ts'
import { type Definitions, peopleStackId } from '../../../organizations/definitions.ts'
import { readBearersSql, readBearersWithAliasesSql } from '../../bearers-sql.ts'
import type { EntityRow, Target } from '../../entity-row.ts'
import { type DeletedEntity, readLastChange, readPastState, readStandingTargets } from '../../past/past-state.ts'
import type { Write } from '../../write-request.ts'
import type { Item } from '../plan.ts'
import { readKept } from '../tombstones.ts'
import { readNamesLeftSql } from './load-sql.ts'
import type { Loaded } from './loaded.ts'

/**
 * Read stage of restores: reads the deleted entities from the change log. An item without one addresses an entity that
 * exists, that never did, or whose values in the log were erased.
 */
export async function readDeletedEntities(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rowOf: (item: Item) => EntityRow | undefined,
): Promise<Loaded['deleted']> {
  const restores = items.filter(item => item.write.operation === 'restore' && !rowOf(item))
  if (restores.length === 0) return noEntities
  const reads = restores.map(item => readDeletedEntity(tx, definitions, item.write))
  await awaitPipelined(reads)
  const deleted = new Map<Item, DeletedEntity>()
  for (const [index, item] of restores.entries()) {
    const entity = await reads[index]
    if (entity) deleted.set(item, entity)
  }
  return deleted
}

const noEntities: Loaded['deleted'] = new Map()

async function readDeletedEntity(
  tx: Transaction,
  definitions: Definitions,
  { stack_id, address }: Write,
): Promise<DeletedEntity | undefined> {
  const { organization_id } = definitions
  const { id } = address as { id: string }
  const entity = { stack_id, id }
  const deletion = await readLastChange({ db: tx, organization_id }, entity)
  // A merged person comes back by an unmerge only, and an erased one not at all.
  if (deletion?.operation !== 'delete') return undefined
  const past = await readPastState(tx, definitions, entity, deletion.version - 1)
  if (!past) return undefined
  const { links, ...state } = past
  const name = state.columns.external_id ?? null
  const { bearer, lastVersion } = await readName(tx, definitions, stack_id, name)
  const standing = await readStandingTargets({ db: tx, organization_id }, links)
  // A link to itself returns with the entity.
  const itself = (target: Target) => (target.id === id ? { id, external_id: name } : target)
  const change = { operation: 'restore', external_id: name, columns: state.columns, missing: [] }
  const kept = stack_id === peopleStackId ? await readKept(tx, definitions, change, deletion.sequence) : undefined
  return {
    ...state,
    id,
    links: standing.map(({ attribute, targets }) => ({ attribute, targets: targets.map(itself) })),
    version: Math.max(deletion.version, lastVersion),
    created_at: deletion.created_at,
    isNameTaken: bearer !== undefined,
    kept,
  }
}

/** Reads the entity that has the name now, and the version at which the name was last released. */
async function readName(
  tx: Transaction,
  { organization_id, has_aliases }: Definitions,
  stack_id: number,
  name: string | null,
) {
  if (name === null) return { bearer: undefined, lastVersion: 0 }
  const parameters = [organization_id, JSON.stringify([{ stack_id, external_id: name }])]
  const statement = has_aliases ? readBearersWithAliasesSql : readBearersSql
  const [bearer] = await tx.query<{ id: string }>(statement, parameters)
  const [release] = await tx.query<{ version: number }>(readNamesLeftSql, parameters)
  return { bearer: bearer?.id, lastVersion: release?.version ?? 0 }
}
