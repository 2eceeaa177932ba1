import type { Reading } from '../db/context.ts'
import { decodeEntries, encodeEntries } from './batch.ts'
import { findBatches } from './read.ts'
import { readNamedBatchesSql, updateBatchSql } from './sql.ts'

const batchesPerRead = 64

/** Takes entities out of the access log. The entries stay, with their counts. Returns how many batches it changed. */
export async function forgetAccesses(reading: Reading, entities: readonly string[]): Promise<number> {
  const { db, organization_id } = reading
  const forgotten = new Set(entities)
  const found = await findBatches(reading, entities)
  let changed = 0
  for (let start = 0; start < found.length; start += batchesPerRead) {
    const values = [organization_id, found.slice(start, start + batchesPerRead)]
    for (const batch of await db.query<{ id: number; entries: Buffer }>(readNamedBatchesSql, values)) {
      const entries = decodeEntries(batch.entries)
      const isListed = entries.some(({ ids }) => ids.some(id => forgotten.has(id)))
      if (!isListed) continue
      const remaining = encodeEntries(
        entries.map(entry => ({ ...entry, ids: entry.ids.filter(id => !forgotten.has(id)) })),
      )
      await db.query(updateBatchSql, [organization_id, batch.id, remaining.hashes, remaining.entries])
      changed += 1
    }
  }
  return changed
}
