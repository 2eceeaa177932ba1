import type { Transaction } from '../db/db.ts'
import { type Detail, pointer, refuse } from '../errors.ts'
import type { Attribute, Definitions } from '../organizations/definitions.ts'
import { findCarrierSql, findRepeatedValuesSql } from './sql.ts'

/** An attribute that becomes unique, with the id of the index that it has then. `isReactivated`: it was archived, which dropped its index. */
type Becoming = Pick<Attribute, 'owner_stack_id' | 'key' | 'index'> & {
  index_id: number | null
  isReactivated?: boolean
}

const maxListed = 20
const maxShownCharacters = 100
/**
 * The largest stack that is searched for the key while the head is locked. The writes of the organization wait for it: 10 ms for 10,000
 * entities, 70 to 100 ms for 100,000, 500 to 900 ms for a million. Entities with 19 kB of values take twelve times as long.
 */
const maxSearched = 100_000

/**
 * Checks that an attribute can become unique. The head must be locked. Returns whether
 * its index needs no fill, because no entity carries the key. Throws a Fault of 409 if the index is not ready, or if entities share a
 * value.
 */
export async function checkUnique(
  tx: Transaction,
  { organization_id }: Definitions,
  { owner_stack_id, key, index, index_id, isReactivated }: Becoming,
  mayRead: (stack_id: number) => boolean = () => false,
): Promise<boolean> {
  const current = index?.id === index_id ? index : undefined
  if (!current?.ready) {
    const values = [organization_id, owner_stack_id, key, maxSearched]
    const [found] = await tx.query<{ entities: number; carries: boolean }>(findCarrierSql, values)
    if (!found!.carries && found!.entities < maxSearched) return true
    if (isReactivated) throwNotReactivated()
    if (current) throwNotReady(`needs the index, which has ${current.indexed} of about ${current.total} entities yet`)
    throwNotReady('needs an index of the stored values first: send `indexed: true` without `unique`')
  }
  const repeated = await tx.query<{ value: unknown; entities: number }>(findRepeatedValuesSql, [
    organization_id,
    index_id,
    owner_stack_id,
    key,
    maxListed,
  ])
  if (repeated.length > 0) throwRepeated(repeated, mayRead(owner_stack_id))
  return false
}

function throwNotReady(message: string): never {
  refuse('invalid_parameter', 'The attribute cannot be unique yet. Retry when its `index_state` is `ready`.', {
    status: 409,
    details: [{ path: pointer('unique'), message }],
  })
}

function throwNotReactivated(): never {
  const steps = 'send {"state": "active", "unique": false}, and {"unique": true} when its `index_state` is `ready`'
  refuse('invalid_parameter', 'The attribute cannot be active and unique at once: its stored values have no index.', {
    status: 409,
    details: [{ path: pointer('state'), message: `needs an index of the stored values first: ${steps}` }],
  })
}

function throwRepeated(repeated: { value: unknown; entities: number }[], isShown: boolean): never {
  const details = repeated.map(({ value, entities }): Detail => {
    const text = JSON.stringify(value)
    const shown = text.length > maxShownCharacters ? `${text.slice(0, maxShownCharacters)}…` : text
    return { path: pointer('unique'), message: `${isShown ? shown : 'a value'} is that of ${entities} entities` }
  })
  refuse('duplicate_entry', 'The attribute cannot be unique: entities share a value. Change their values first.', {
    details,
  })
}
