import type { Reading } from '../db/context.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { findEntitySql, findPersonByAnyIdentifier } from './read/read-sql.ts'
import type { Address } from './write-request.ts'

/**
 * Reads the internal identifier of the addressed entity of a stack. Undefined if it does not exist. A person is also
 * found by a further identifier.
 */
export async function findEntity(
  { db, organization_id }: Reading,
  stack_id: number,
  address: Address,
  signal?: Signal,
): Promise<string | undefined> {
  const [by, identifier] =
    'id' in address ? (['id', address.id] as const) : (['external_id', address.external_id] as const)
  const [found] = await db.query<{ id: string }>(findEntitySql[by], [organization_id, stack_id, identifier], signal)
  if (found || stack_id !== peopleStackId) return found?.id
  const [person] = await db.query<{ id: string }>(findPersonByAnyIdentifier[by], [organization_id, identifier], signal)
  return person?.id
}

/**
 * The internal identifier of an address. It is that of the address itself, even if the entity is gone, or that of the
 * entity to which the external identifier leads today.
 */
export const idOfAddress = async (reading: Reading, stack_id: number, address: Address, signal?: Signal) =>
  'id' in address ? address.id : findEntity(reading, stack_id, address, signal)
