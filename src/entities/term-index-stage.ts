import type { Transaction } from '../db/db.ts'
import type { Definitions } from '../organizations/definitions.ts'
import type { Item } from './conflicts.ts'
import type { EntityRow } from './entity-row.ts'
import { termsOf } from './index-keys.ts'
import { indexTermsSql } from './index-keys-sql.ts'
import type { Accepted } from './read-stage.ts'

type Term = { n: number; v: string; e: string }

/**
 * Index: replaces the terms of indexed attributes whose stored value changes, those of deleted entities too. What stood
 * is known from the locked row, so the old terms are named one by one.
 */
export function indexTerms(
  tx: Transaction,
  definitions: Definitions,
  accepted: Accepted[],
  rows: ReadonlyMap<Item, EntityRow>,
): Promise<unknown>[] {
  const gone: Term[] = []
  const made: Term[] = []
  for (const entry of accepted) noteTerms(entry, rows.get(entry.item), definitions, gone, made)
  if (gone.length === 0 && made.length === 0) return []
  return [tx.query(indexTermsSql, [definitions.organization_id, JSON.stringify(gone), JSON.stringify(made)])]
}

function noteTerms(
  { item, change }: Accepted,
  row: EntityRow | undefined,
  definitions: Definitions,
  gone: Term[],
  made: Term[],
) {
  const declared = definitions.declared.get(item.write.stack_id)
  if (!declared) return
  for (const key of [...Object.keys(change.set), ...change.removed]) {
    const attribute = declared.get(key)
    if (!attribute?.index) continue
    const { type, index } = attribute
    const before = termsOf(type, ownValue(row?.attributes, key))
    const after = termsOf(type, change.operation === 'delete' ? undefined : ownValue(change.set, key))
    for (const v of before.difference(after)) gone.push({ n: index.id, v, e: change.id })
    for (const v of after.difference(before)) made.push({ n: index.id, v, e: change.id })
  }
}

const ownValue = (values: Record<string, unknown> | undefined, key: string): unknown =>
  values && Object.hasOwn(values, key) ? values[key] : undefined
