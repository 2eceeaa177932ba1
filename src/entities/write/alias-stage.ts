import type { Transaction } from '../../db/db.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { DecidedSet } from '../decide/decide-set.ts'
import type { Target } from '../entity-row.ts'
import {
  countFirstAliasSql,
  deleteAliasesSql,
  insertAliasesSql,
  readAliasesSql,
  rememberAliasesSql,
} from './alias-sql.ts'
import { addressKey, type Item, nameKey, referenceKey } from './plan-write.ts'

/** A person that a further identifier leads to. */
type AliasRow = Target & { alias_name: string | null; alias_id: string | null }

/** Reads the `sameAs` of the items of an array ({@link Item}). Undefined if they name nobody in several ways. */
export async function readSameAs(
  db: Pick<Transaction, 'query'>,
  { organization_id, has_aliases }: Definitions,
  items: Item[],
): Promise<Item['sameAs']> {
  if (!has_aliases) return undefined
  const asked = new Map<string, object>()
  for (const { write, plan } of items) {
    const { stack_id, address } = write
    const key = addressKey(write)
    if (key !== undefined && stack_id === peopleStackId) asked.set(key, { stack_id, ...address })
    for (const { references } of plan.links.values())
      for (const reference of references)
        if (reference.stack_id === peopleStackId) asked.set(referenceKey(reference), reference)
  }
  if (asked.size === 0) return undefined
  const rows = await db.query<AliasRow>(readAliasesSql, [organization_id, JSON.stringify([...asked.values()])])
  const keyOf = (external_id: string) => nameKey({ stack_id: peopleStackId, external_id })
  const sameAs = rows.map(({ alias_name, alias_id, id, external_id }): [string, string] => [
    alias_name === null ? alias_id! : keyOf(alias_name),
    external_id === null ? id : keyOf(external_id),
  ])
  return rows.length === 0 ? undefined : new Map(sameAs)
}

export type NewAlias = {
  external_id: string
  person_id: string
  /** The merge that the alias comes from. Null for the name by which a person was sent when it was found by its email or phone. */
  merge_id: number | null
}

/** Inserts aliases. The first alias of an organization increments the version of its definitions. */
export function insertAliases(
  tx: Transaction,
  organization_id: number,
  aliases: readonly NewAlias[],
  at: string,
): Promise<unknown>[] {
  if (aliases.length === 0) return []
  return [
    countFirstAlias(tx, organization_id),
    tx.query(insertAliasesSql, [organization_id, JSON.stringify(aliases), at]),
  ]
}

/**
 * Increments the version of the definitions if the organization has neither an alias nor a merge. Runs before the transaction inserts one.
 */
export const countFirstAlias = (tx: Transaction, organization_id: number): Promise<unknown> =>
  tx.query(countFirstAliasSql, [organization_id])

/** Alias stage: stores the new aliases, and deletes those of deleted people and those that their own person took as its external identifier. */
export function storeAliases(tx: Transaction, { definitions, at, accepted }: DecidedSet): Promise<unknown>[] {
  const { organization_id, has_aliases } = definitions
  const added: NewAlias[] = []
  const removed: { person_id: string; external_id: string | null }[] = []
  const ended: { stack_id: number; id: string; version: number }[] = []
  for (const { item, change } of accepted) {
    for (const external_id of change.aliases ?? []) added.push({ external_id, person_id: change.id, merge_id: null })
    if (!has_aliases || item.write.stack_id !== peopleStackId) continue
    const { operation, id, columns, version } = change
    if (operation === 'delete') {
      removed.push({ person_id: id, external_id: null })
      ended.push({ stack_id: peopleStackId, id, version })
    }
    if (operation === 'update' && columns.external_id) removed.push({ person_id: id, external_id: columns.external_id })
  }
  return [
    ...(ended.length > 0 ? [tx.query(rememberAliasesSql, [organization_id, JSON.stringify(ended)])] : []),
    ...(removed.length > 0 ? [tx.query(deleteAliasesSql, [organization_id, JSON.stringify(removed)])] : []),
    ...insertAliases(tx, organization_id, added, at),
  ]
}
