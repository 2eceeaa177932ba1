import { type Context, contextOf, type Within } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { changeOrganization, ownAuthor } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import { leadLinksSql, listUnfinishedMergesSql, readMovingSql, storeMovingSql } from './merge-sql.ts'

/** The lists of links that one transaction moves. It holds the lock of the head for 25 ms. */
const listsPerSet = 1_000

/** The people whose links a merge or an unmerge moves, and the person to whom these links led before. */
export type MovedLinks = { people: readonly string[]; from: string }

/**
 * Moves the first set of links to people in the transaction of the merge or unmerge. Returns whether all links are
 * moved. If not, {@link continueLeading} moves the rest.
 */
export async function leadFirstLinks(within: Within, merge_id: number, moved: MovedLinks): Promise<boolean> {
  const { tx, organization_id } = within
  if (await leadSet(within, moved)) return true
  await tx.query(storeMovingSql, [organization_id, merge_id, moved.people])
  return false
}

/**
 * Moves further sets of links of a merge, each in a transaction, until all are moved, the signal aborts, or
 * `performance.now()` reaches `endMs`. Returns whether all links are moved.
 */
export async function continueLeading(
  context: Context,
  merge_id: number,
  { endMs = Number.POSITIVE_INFINITY, signal }: { endMs?: number; signal?: Signal | undefined } = {},
): Promise<boolean> {
  const { organization_id } = context
  for (;;) {
    const isComplete = await changeOrganization(context, ownAuthor(), async locked => {
      const { tx } = locked
      const [moved] = await tx.query<MovedLinks>(readMovingSql, [organization_id, merge_id])
      const result = moved === undefined || (await leadSet(locked, moved))
      const statements = moved && result ? [tx.query(storeMovingSql, [organization_id, merge_id, null])] : []
      return { statements, changes: [], result }
    })
    if (isComplete) return true
    if (signal?.aborted || performance.now() >= endMs) return false
  }
}

/** Continues the merges of all organizations that the end of a process or a deadline left unfinished. */
export async function completeMerges(db: Database, { signal }: { signal?: Signal } = {}): Promise<void> {
  const merges = await db.query<{ organization_id: number; merge_id: number }>(listUnfinishedMergesSql, [])
  for (const { organization_id, merge_id } of merges)
    if (!signal?.aborted) await continueLeading(contextOf(db, organization_id), merge_id, { signal })
}

/** Moves one set. Returns whether all links are moved. */
async function leadSet({ tx, organization_id }: Within, { people, from }: MovedLinks): Promise<boolean> {
  const [led] = await tx.query<{ count: number }>(leadLinksSql, [organization_id, people, from, listsPerSet])
  return led!.count < listsPerSet
}
