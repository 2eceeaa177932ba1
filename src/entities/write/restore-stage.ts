import type { Transaction } from '../../db/db.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { EntityRow } from '../entity-row.ts'
import {
  type DeletedEntity,
  eachOnce,
  type PastLinks,
  readPastChange,
  readPastState,
  readPastTargets,
  unlimited,
} from '../past/past-state.ts'
import type { Write } from '../write-request.ts'
import { readBearersWithAliasesSql } from './alias-sql.ts'
import type { Item } from './plan-write.ts'
import { readBearersSql, readNamesLeftSql } from './sql.ts'

/**
 * Read stage of restores: reads the deleted entities from the change log. An item without one addresses an entity that
 * exists, that never did, or whose values in the log were erased.
 */
export async function readDeletedEntities(
  tx: Transaction,
  definitions: Definitions,
  items: Item[],
  rows: ReadonlyMap<Item, EntityRow>,
): Promise<Map<Item, DeletedEntity>> {
  const deleted = new Map<Item, DeletedEntity>()
  for (const item of items) {
    if (item.write.operation !== 'restore' || rows.has(item)) continue
    const entity = await readDeletedEntity(tx, definitions, item.write)
    if (entity) deleted.set(item, entity)
  }
  return deleted
}

async function readDeletedEntity(
  tx: Transaction,
  definitions: Definitions,
  { stack_id, address }: Write,
): Promise<DeletedEntity | undefined> {
  const { organization_id } = definitions
  const { id } = address as { id: string }
  const entity = { stack_id, id }
  const deletion = await readPastChange(tx, organization_id, entity, {})
  if (!deletion || deletion.operation === 'erase') return undefined
  // A merged person comes back by an unmerge only.
  if (deletion.operation === 'merge') return undefined
  if (deletion.operation !== 'delete') return undefined
  const past = await readPastState(tx, definitions, entity, deletion.version - 1)
  if (!past) return undefined
  const { links, ...state } = past
  const name = state.columns.external_id ?? null
  const { bearer, lastVersion } = await readName(tx, definitions, stack_id, name)
  return {
    ...state,
    id,
    links: await readStanding(tx, organization_id, { id, external_id: name }, links, deletion.sequence),
    version: Math.max(deletion.version, lastVersion),
    created_at: deletion.created_at,
    isNameTaken: bearer !== undefined,
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

/** The links that a read showed before the deletion, without targets that no longer exist. */
async function readStanding(
  tx: Transaction,
  organization_id: number,
  own: { id: string; external_id: string | null },
  links: PastLinks[],
  deletedBy: number,
): Promise<DeletedEntity['links']> {
  const shown = await readPastTargets(tx, organization_id, links, deletedBy - 1)
  const linked = shown.map(({ attribute, targets }) => ({
    attribute,
    ids: targets.map(({ id }) => id),
    sequence: unlimited.sequence,
  }))
  const standing = await readPastTargets(tx, organization_id, linked, unlimited.sequence)
  const byId = new Map(standing.flatMap(({ targets }) => targets.map(target => [target.linked_id, target])))
  // A link to itself returns with the entity.
  byId.set(own.id, { ...own, linked_id: own.id })
  return shown
    .map(({ attribute, targets }) => ({
      attribute,
      targets: eachOnce(targets.map(({ id }) => byId.get(id)).filter(target => target !== undefined)),
    }))
    .filter(({ targets }) => targets.length > 0)
}
