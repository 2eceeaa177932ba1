import type { Transaction } from '../../db/db.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { Accepted, DecidedSet } from '../decide/decide-set.ts'
import type { EntityRow } from '../entity-row.ts'
import { type Term, termsOf } from '../indexes/index-keys.ts'
import { deleteKeysSql, insertKeysSql } from '../indexes/index-keys-sql.ts'
import { deleteTimeTermsSql } from '../indexes/sort-index-sql.ts'
import { collectSortTerms, type TermChanges } from './sort-terms-stage.ts'

/**
 * Index stage: replaces the terms of indexed attributes whose value changes, and of the fields that sort, and deletes those of deleted
 * entities. The stored row has the old values, so each old term is deleted by its key.
 */
export function indexTerms(tx: Transaction, set: DecidedSet): Promise<unknown>[] {
  const { definitions, accepted, rows } = set
  const { organization_id } = definitions
  const terms: TermChanges = { deleted: [], inserted: [], deletedTimes: [] }
  const { deleted, inserted, deletedTimes } = terms
  for (const entry of accepted) collectTerms(entry, rows.get(entry.item), definitions, deleted, inserted)
  collectSortTerms(set, terms)
  const statements: Promise<unknown>[] = []
  if (deletedTimes.length > 0)
    statements.push(tx.query(deleteTimeTermsSql, [organization_id, JSON.stringify(deletedTimes)]))
  if (deleted.length > 0) statements.push(tx.query(deleteKeysSql, [organization_id, JSON.stringify(deleted)]))
  if (inserted.length > 0) statements.push(tx.query(insertKeysSql, [organization_id, JSON.stringify(inserted)]))
  return statements
}

function collectTerms(
  { item, change }: Accepted,
  row: EntityRow | undefined,
  definitions: Definitions,
  deleted: Term[],
  inserted: Term[],
) {
  const declared = definitions.declared.get(item.write.stack_id)
  if (!declared) return
  for (const key of [...Object.keys(change.set), ...change.removed]) {
    const attribute = declared.get(key)
    if (!attribute?.index) continue
    const { type, index } = attribute
    const before = termsOf(type, ownValue(row?.attributes, key))
    const after = termsOf(type, change.operation === 'delete' ? undefined : ownValue(change.set, key))
    const ids = { index_id: index.id, entity_id: change.id }
    for (const value of before.difference(after)) deleted.push({ ...ids, value })
    for (const value of after.difference(before)) inserted.push({ ...ids, value })
  }
}

const ownValue = (values: Record<string, unknown> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined
