import { type Database, rootOf } from '../db/db.ts'
import { refuse } from '../errors.ts'
import type { FollowingCall } from '../http/pipeline/route.ts'
import type { Head } from './read-changes.ts'
import type { ChangesQuery } from './schema.ts'
import type { Selection } from './selection.ts'

export type FeedCall = FollowingCall<ChangesQuery>

/** A stream to start: its selection, its position, and the head that was read before it. `release` counts it out. */
export type StreamStart = { selection: Selection; after: number; head: Head; release: () => void }

const openStreams = new WeakMap<Database, Map<number, number>>()

/**
 * Counts a request of an organization that waits for changes or streams them. Throws a Fault of 503 if the organization
 * has `max` of them in this process. The function that it returns counts the request out; a second call does nothing.
 */
export function acquireStream(db: Database, organization_id: number, max: number): () => void {
  const counts = openStreams.get(rootOf(db)) ?? new Map<number, number>()
  openStreams.set(rootOf(db), counts)
  const count = counts.get(organization_id) ?? 0
  if (count >= max)
    refuse(
      'operation_failed',
      `The organization already has ${max} requests that wait for changes (KITH_LIMIT_CHANGE_STREAMS). Retry after 10 seconds.`,
      { status: 503, headers: { 'Retry-After': '10' } },
    )
  counts.set(organization_id, count + 1)
  let isOpen = true
  return () => {
    if (!isOpen) return
    isOpen = false
    const left = counts.get(organization_id)! - 1
    if (left > 0) counts.set(organization_id, left)
    else counts.delete(organization_id)
  }
}
