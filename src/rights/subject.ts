import { findOtherHoldersSql } from '../changes/people-sql.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Reading } from '../db/context.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import { findSubject } from './dossier-sql.ts'

/** The maximum number of other holders that a response names. */
const maxOtherHolders = 100

/**
 * Reads the person of a path, who may be deleted, followed by the people who were merged into it. Throws a Fault of
 * 404.
 */
export async function readSubject(
  { db, organization_id }: Reading,
  { params }: Pick<Call<unknown>, 'params'>,
  signal?: Signal,
): Promise<string[]> {
  const { by, identifier } = personOf(params)
  type Subject = { id: string; merged_ids: string[] }
  const [subject] = await db.query<Subject>(findSubject[by], [organization_id, identifier], signal)
  return subject ? [subject.id, ...subject.merged_ids] : throwNoPerson()
}

/**
 * Reads the internal identifiers of other people who had the name and were deleted, but not erased. Empty if the
 * request has the internal identifier.
 */
export async function readOtherHolders(
  { db, organization_id }: Reading,
  name: string | undefined,
  person_id: string,
  signal?: Signal,
): Promise<string[]> {
  if (name === undefined) return []
  const values = [organization_id, name, person_id, maxOtherHolders]
  const rows = await db.query<{ id: string }>(findOtherHoldersSql, values, signal)
  return rows.map(({ id }) => id)
}
