import type { Transaction } from '../db/db.ts'
import { type Detail, pointer, refuse } from '../errors.ts'
import type { Attribute, Definitions } from '../organizations/definitions.ts'
import { findCarrierSql, findRepeatedValuesSql } from './sql.ts'

/** An attribute that becomes unique, with the id of the index that it has then. */
type Becoming = Pick<Attribute, 'owner_stack_id' | 'key' | 'index'> & { index_id: number | null }

const maxListed = 20
const maxShownCharacters = 100
/** Up to this many entities are searched for the key while the head is locked. That takes 10 ms. */
const maxSearched = 10_000

/**
 * Checks that an attribute can become unique. The head must be locked: a write that was decided before is decided again. Returns whether
 * the index is new and needs no fill, because no entity carries the key. Throws a Fault of 409 if the index is not ready, or if entities
 * share a value.
 */
export async function checkUnique(
  tx: Transaction,
  { organization_id }: Definitions,
  { owner_stack_id, key, index, index_id }: Becoming,
  mayRead: (stack_id: number) => boolean = () => false,
): Promise<boolean> {
  if (!index || index.id !== index_id) {
    const [found] = await tx.query<{ entities: number; carries: boolean }>(findCarrierSql, [
      organization_id,
      owner_stack_id,
      key,
      maxSearched,
    ])
    if (!found!.carries && found!.entities < maxSearched) return true
    throwNotReady('needs an index of the stored values first: send `indexed: true` without `unique`')
  }
  if (!index.ready) throwNotReady(`needs the index, which has ${index.indexed} of about ${index.total} entities yet`)
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
