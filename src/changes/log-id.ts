import { randomUUID } from 'node:crypto'
import type { Context } from '../db/context.ts'
import { renewLogIdSql } from './sql.ts'

/**
 * Gives the change log of an organization a new `log_id`, so that positions in the old numbering are refused. Returns
 * it with the number of the newest change.
 */
export async function renewLogId({ db, organization_id }: Context): Promise<{ log_id: string; head: number }> {
  const log_id = randomUUID()
  const [row] = await db.query<{ sequence: number }>(renewLogIdSql, [organization_id, log_id])
  if (!row) throw new Error(`organization ${organization_id} has no row in change_heads`)
  return { log_id, head: row.sequence }
}
