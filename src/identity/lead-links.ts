import { type Context, contextOf, type Within } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { changeOrganization, ownAuthor } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import { leadLinksSql, listUnfinishedMergesSql, readMovingSql, storeMovingSql } from './merge-sql.ts'

/** The lists of links that one transaction leads elsewhere. It holds the head for 25 ms. */
const listsPerSet = 1_000

/** The people whose links a merge or its undoing leads elsewhere, and the person to whom these have led. */
export type MovedLinks = { people: readonly string[]; from: string }

/**
 * Leads the first set of links to people elsewhere, in the transaction of the merge or its undoing. Returns whether no other link is left.
 * Otherwise {@link continueLeading} goes on.
 */
export async function leadFirstLinks(within: Within, merge_id: number, moved: MovedLinks): Promise<boolean> {
  const { tx, organization_id } = within
  if (await leadSet(within, moved)) return true
  await tx.query(storeMovingSql, [organization_id, merge_id, moved.people])
  return false
}

/**
 * Leads further sets of links of a merge, each in a transaction, until none is left, the signal aborts or `performance.now()` has reached
 * `endMs`. Returns whether no link is left.
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

/** Goes on with the merges of all organizations that a process or a deadline left unfinished. */
export async function completeMerges(db: Database, { signal }: { signal?: Signal } = {}): Promise<void> {
  const merges = await db.query<{ organization_id: number; merge_id: number }>(listUnfinishedMergesSql, [])
  for (const { organization_id, merge_id } of merges)
    if (!signal?.aborted) await continueLeading(contextOf(db, organization_id), merge_id, { signal })
}

/** Returns whether no link is left. */
async function leadSet({ tx, organization_id }: Within, { people, from }: MovedLinks): Promise<boolean> {
  const [led] = await tx.query<{ count: number }>(leadLinksSql, [organization_id, people, from, listsPerSet])
  return led!.count < listsPerSet
}
