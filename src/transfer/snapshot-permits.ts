import type { Database } from '../db/db.ts'
import { KeyedSemaphore } from '../db/keyed-semaphore.ts'
import { throwBusy } from './refusals.ts'

/**
 * An export or a dossier holds a connection with a snapshot for as long as its client reads. One organization may hold half of those
 * of a process.
 */
const maxSnapshots = 4
const maxSnapshotsPerOrganization = maxSnapshots / 2

const processPermits = new KeyedSemaphore<'snapshot'>(maxSnapshots)
const organizationPermits = new KeyedSemaphore<number>(maxSnapshotsPerOrganization)

/** Acquires the permits of a snapshot. The function that it returns releases them. Throws a Fault of 503 if none is free. */
export function acquireSnapshotPermits(db: Database, organizationId: number): () => void {
  const releaseOrganization =
    organizationPermits.tryAcquire(db, organizationId) ??
    throwBusy(`The organization already runs ${maxSnapshotsPerOrganization} exports or dossiers.`)
  const releaseProcess = processPermits.tryAcquire(db, 'snapshot')
  if (!releaseProcess) {
    releaseOrganization()
    return throwBusy(`The service already runs ${maxSnapshots} exports or dossiers.`)
  }
  return () => {
    releaseProcess()
    releaseOrganization()
  }
}
