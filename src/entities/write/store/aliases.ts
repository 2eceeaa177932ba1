import type { Within } from '../../../db/context.ts'
import type { Transaction } from '../../../db/db.ts'
import { peopleStackId } from '../../../organizations/definitions.ts'
import type { DecidedRound } from '../round.ts'
import {
  countFirstAliasSql,
  deleteAliasesSql,
  insertAliasesSql,
  rememberAliasesSql,
  rememberNamesSql,
} from './store-sql.ts'

export type NewAlias = {
  external_id: string
  person_id: string
  /**
   * The merge that the alias comes from. Null for the external identifier of a write that recognized its person by
   * email or phone.
   */
  merge_id: number | null
}

/** Inserts aliases. The first alias of an organization increments the version of its definitions. */
export function insertAliases(within: Within, aliases: readonly NewAlias[], at: string): Promise<unknown>[] {
  const { tx, organization_id } = within
  if (aliases.length === 0) return []
  return [countFirstAlias(within), tx.query(insertAliasesSql, [organization_id, JSON.stringify(aliases), at])]
}

/**
 * Increments the version of the definitions if the organization has neither an alias nor a merge. Runs before the
 * transaction inserts one.
 */
export const countFirstAlias = ({ tx, organization_id }: Within): Promise<unknown> =>
  tx.query(countFirstAliasSql, [organization_id])

/**
 * Alias stage: stores the new aliases. Deletes the aliases of deleted people, those that a write releases, and those
 * that their own person takes as its external identifier.
 */
export function storeAliases(tx: Transaction, { definitions, at, accepted }: DecidedRound): Promise<unknown>[] {
  const { organization_id, has_aliases } = definitions
  const added: NewAlias[] = []
  const removed: { person_id: string; external_id: string | null }[] = []
  const released: { stack_id: number; external_id: string; version: number }[] = []
  const ended: { stack_id: number; id: string; version: number }[] = []
  for (const { stack_id, change } of accepted) {
    for (const external_id of change.aliases ?? []) added.push({ external_id, person_id: change.id, merge_id: null })
    if (!has_aliases || stack_id !== peopleStackId) continue
    const { operation, id, columns, version } = change
    if (operation === 'delete') {
      removed.push({ person_id: id, external_id: null })
      ended.push({ stack_id: peopleStackId, id, version })
    }
    for (const external_id of change.released ?? []) {
      removed.push({ person_id: id, external_id })
      released.push({ stack_id, external_id, version })
    }
    if (operation === 'update' && columns.external_id) removed.push({ person_id: id, external_id: columns.external_id })
  }
  return [
    ...(ended.length > 0 ? [tx.query(rememberAliasesSql, [organization_id, JSON.stringify(ended)])] : []),
    ...(released.length > 0 ? [tx.query(rememberNamesSql, [organization_id, JSON.stringify(released)])] : []),
    ...(removed.length > 0 ? [tx.query(deleteAliasesSql, [organization_id, JSON.stringify(removed)])] : []),
    ...insertAliases({ tx, organization_id }, added, at),
  ]
}
