import type { Database } from '../../db/db.ts'
import { perDatabase } from '../../db/per-database.ts'
import { openSnapshot, type Snapshot } from '../../db/snapshot.ts'
import { FairPool } from '../../process/fair-pool.ts'
import { throwBusy } from '../../values/errors.ts'

/**
 * An export, a dossier or a stream of groups holds a connection with a snapshot for as long as its client reads. One
 * organization may hold half of a process's snapshots.
 */
const maxSnapshots = 4
const maxPerOrganization = maxSnapshots / 2
const snapshots = perDatabase(() => new FairPool({ max: maxSnapshots, share: maxPerOrganization }))

/** Opens a snapshot, which the caller ends with `close`. Throws a Fault of 503 if the maximum number is open. */
export async function openExportedSnapshot(
  db: Database,
  organizationId: number,
): Promise<{ snapshot: Snapshot; close: () => Promise<void> }> {
  const pool = snapshots(db)
  const release = pool.tryTake(organizationId)
  if (!release)
    return throwBusy(
      pool.heldBy(organizationId) >= maxPerOrganization
        ? `The organization already runs ${maxPerOrganization} exports, dossiers or streams of groups.`
        : `The service already runs ${maxSnapshots} exports, dossiers or streams of groups.`,
    )
  try {
    const snapshot = await openSnapshot(db)
    return { snapshot, close: () => snapshot.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}
