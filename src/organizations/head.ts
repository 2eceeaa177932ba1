import type { Within } from '../db/context.ts'
import type { Transaction } from '../db/db.ts'
import { type Definitions, readDefinitions } from './definitions.ts'
import { lockHeadSql } from './definitions-sql.ts'

/** The head of an organization: the version of its definitions, and the number of its newest change. */
export type Head = { schema_version: number; sequence: number }

/**
 * Locks the head of an organization. It is the first statement of every transaction that changes the organization. The
 * transaction that holds the lock is the only writer in all processes, so the data that it reads afterwards stay
 * current until it ends.
 */
export async function lockHead({ tx, organization_id }: Within): Promise<Head> {
  const [head] = await tx.query<Head>(lockHeadSql, [organization_id])
  if (!head) throw new Error(`organization ${organization_id} has no row in change_heads`)
  return head
}

/** The current definitions, under the lock of the head: `cached`, or `cached` with the later changes. */
export async function standingDefinitions(tx: Transaction, head: Head, cached: Definitions): Promise<Definitions> {
  return head.schema_version === cached.version
    ? cached
    : readDefinitions({ db: tx, organization_id: cached.organization_id }, cached)
}
