import type { Reading } from '../db/context.ts'
import { decodeEntries, encodeEntries } from './batch.ts'
import { batchesOfEntities } from './read-entries.ts'
import { updateBatchSql } from './sql.ts'

/** Removes entities from the access log. The entries stay, with their counts. Returns the number of changed batches. */
export async function forgetAccesses(reading: Reading, entities: readonly string[]): Promise<number> {
  const { db, organization_id } = reading
  const forgotten = new Set(entities)
  let changed = 0
  for await (const batch of batchesOfEntities(reading, entities)) {
    const entries = decodeEntries(batch.entries)
    const isListed = entries.some(({ ids }) => ids.some(id => forgotten.has(id)))
    if (!isListed) continue
    const remaining = encodeEntries(
      entries.map(entry => ({ ...entry, ids: entry.ids.filter(id => !forgotten.has(id)) })),
    )
    await db.query(updateBatchSql, [organization_id, batch.id, remaining.hashes, remaining.entries])
    changed += 1
  }
  return changed
}
