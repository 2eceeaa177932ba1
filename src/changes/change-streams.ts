import type { Context } from '../db/context.ts'
import { perDatabase } from '../db/per-database.ts'
import { FairPool, type Release } from '../process/fair-pool.ts'
import type { FollowingCall } from '../route/call.ts'
import { type Detail, refuse } from '../values/errors.ts'
import type { Head } from './read-changes.ts'
import type { ChangesQuery } from './schema.ts'
import type { Selection } from './selection.ts'

export type FeedCall = FollowingCall<ChangesQuery>

/** A stream to start: its selection, its position, and the head that was read before it. `release` counts it out. */
export type StreamStart = {
  selection: Selection
  warnings: readonly Detail[]
  after: number
  head: Head
  release: Release
}

const streams = perDatabase((_, max: number) => new FairPool({ share: max }))

/**
 * Counts a request of an organization that waits for changes or streams them. Throws a Fault of 503 if the organization
 * has `max` of them in this process. The function that it returns counts the request out.
 */
export const takeStream = ({ db, organization_id }: Context, max: number): Release =>
  streams(db, max).tryTake(organization_id) ??
  refuse(
    'operation_failed',
    `The organization already has ${max} requests that wait for changes (KITH_LIMIT_CHANGE_STREAMS). Retry after 10 seconds.`,
    { status: 503, headers: { 'Retry-After': '10' } },
  )
