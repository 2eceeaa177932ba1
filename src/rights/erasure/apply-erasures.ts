import type { CertificateContent } from '../../ledger/certificate.ts'
import { cachedDefinitions, peopleStackId, stackIdOf } from '../../organizations/definitions.ts'
import { firstId, uuidOfRecord } from '../../values/formats.ts'
import type { ErasureTarget } from './erase-entities.ts'
import { type ErasureContext, type ErasureResult, erasePerson, findToErase } from './erase-person.ts'
import { readEntombedSql, readReturnedSql } from './erasure-sql.ts'

/** A statement hashes the identifiers of at most this many people. */
const peoplePerRead = 10_000

/** A person to erase again, and the reason. */
type Again = { person_id: string; reason: string; also: ErasureTarget[] }

/**
 * Erases people again who came back after their erasure, by a restore of an older backup or by an import from
 * elsewhere. Finds them by the internal identifiers of certificates and of stored erasures, and by the keyed hashes of
 * their identifiers. Returns the new erasures.
 */
export async function applyErasures(
  context: ErasureContext,
  certificates: readonly CertificateContent[],
): Promise<ErasureResult[]> {
  const again = new Map<string, Again>()
  const definitions = await cachedDefinitions(context)
  for (const { erasure } of certificates) {
    const { person_id, merged_ids, record_ids, reason } = erasure
    const records = record_ids.flatMap(({ stack_key, record_id }) => {
      const stack_id = stackIdOf(definitions, stack_key)
      return stack_id === undefined ? [] : [{ stack_id, id: uuidOfRecord(record_id) }]
    })
    const also = [...merged_ids.map(id => ({ stack_id: peopleStackId, id })), ...records]
    again.set(person_id, { person_id: await leadOf(context, person_id), reason, also })
  }
  const reason = 'The person was erased before and came back.'
  for (const person_id of await findReturned(context))
    if (!again.has(person_id)) again.set(person_id, { person_id, reason, also: [] })
  const results: ErasureResult[] = []
  for (const found of again.values()) {
    const before = Date.now()
    const result = await erasePerson(context, {
      ...found,
      records: 'keep',
      // A hold did not prevent the first erasure, or the backup is older than the end of the hold.
      override_hold: true,
      actor: 'kith erasures apply',
      request_id: 'apply',
    })
    if (result && Date.parse(result.erasure.at) >= before) results.push(result)
  }
  return results
}

/** Returns the person, or the person that it has been merged into. */
const leadOf = async (context: ErasureContext, person_id: string): Promise<string> =>
  (await findToErase(context, { by: 'id', identifier: person_id })) ?? person_id

/** Finds the existing people who were erased, or whose identifiers were. */
async function findReturned({ db, organization_id }: ErasureContext): Promise<string[]> {
  const stored = await db.query<ErasureTarget>(readReturnedSql, [organization_id])
  const ids = new Set(stored.filter(({ stack_id }) => stack_id === peopleStackId).map(({ id }) => id))
  for (let after = firstId; ; ) {
    const values = [organization_id, after, peoplePerRead]
    const [read] = await db.query<{ last: string | null; ids: string[] }>(readEntombedSql, values)
    for (const id of read!.ids) ids.add(id)
    if (read!.last === null) return [...ids]
    after = read!.last
  }
}
