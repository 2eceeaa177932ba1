import { type Database, statement } from '../../src/db/db.ts'
import { searchFollowerName } from '../../src/entities/indexes/search-index-sql.ts'
import type { Follower } from '../../src/followers/follower.ts'
import { createFollowers, type FollowerOptions } from '../../src/followers/followers.ts'

/** Throws what a follower reports. */
export const throwReported: FollowerOptions['report'] = error => {
  throw error
}

const beginForAllSql = statement(
  '',
  `insert into followers (organization_id, name) select h.organization_id, $1 from change_heads h
   on conflict (organization_id, name, id) do update set paused = false where followers.paused`,
)

/** Lets the followers work until they have nothing to do. */
export async function follow(
  db: Database,
  followers: Follower[],
  options: Partial<FollowerOptions> = {},
): Promise<void> {
  // An organization has this follower from its first search on.
  if (followers.some(({ name }) => name === searchFollowerName)) await db.query(beginForAllSql, [searchFollowerName])
  const following = createFollowers(db, followers, { report: throwReported, ...options })
  await following.settle()
  await following.stop()
}

/** Lets the followers work as the program does, until the returned function is called. */
export function startFollowing(db: Database, followers: Follower[]): () => Promise<void> {
  const following = createFollowers(db, followers, { report: throwReported })
  following.start()
  return following.stop
}
