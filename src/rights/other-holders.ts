import { findOtherHoldersSql } from '../changes/people-sql.ts'
import type { Reading } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'

/** A response names at most this many. */
const maxOtherHolders = 100

/**
 * Reads the internal identifiers of the other people who once had a name and were deleted, but not erased. None if the person was
 * asked for by the internal identifier.
 */
export async function readOtherHolders(
  { db, organization_id }: Reading,
  { name, person_id }: { name: string | undefined; person_id: string },
  signal?: Signal,
): Promise<string[]> {
  if (name === undefined) return []
  const rows = await db.query<{ id: string }>(
    findOtherHoldersSql,
    [organization_id, name, person_id, maxOtherHolders],
    signal,
  )
  return rows.map(({ id }) => id)
}
