import type { Database } from '../../src/db/db.ts'
import { type CleanupOptions, danglingLinkFollower } from '../../src/entities/dangling-link-cleanup.ts'
import { createFollowers, type Follower, type FollowerOptions } from '../../src/followers/followers.ts'

/** Throws what a follower reports. */
export const throwReported: FollowerOptions['report'] = error => {
  throw error
}

/** Lets the followers work until they have nothing to do. */
export async function follow(
  db: Database,
  followers: Follower[],
  options: Partial<FollowerOptions> = {},
): Promise<void> {
  const following = createFollowers(db, followers, { report: throwReported, ...options })
  await following.settle()
  await following.stop()
}

/** Removes the dangling links of all organizations once, without the pause between two cleanups. Returns their number. */
export async function cleanDanglingLinks(db: Database, options: CleanupOptions): Promise<number> {
  let removed = 0
  const onRemoved = (links: number) => {
    removed += links
  }
  const follower = { ...danglingLinkFollower({ ...options, onRemoved }), maxConcurrent: 1_000 }
  const nowMs = () => Date.now() + dayMs
  const following = createFollowers(db, [follower], { report: throwReported, nowMs })
  await following.tick()
  await following.idle()
  await following.stop()
  return removed
}

const dayMs = 86_400_000
