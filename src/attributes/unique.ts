import type { Within } from '../db/context.ts'
import type { Transaction } from '../db/db.ts'
import type { Attribute, Definitions } from '../organizations/definitions.ts'
import { type Detail, pointer, refuse } from '../values/errors.ts'
import { readProgress } from './indexing.ts'
import { findCarriedKeysSql, findCarrierSql, findRepeatedValuesSql } from './sql.ts'

/**
 * An attribute that becomes unique, with the id of the index that it then has. `isReactivated`: it was archived, which
 * dropped its index.
 */
type Becoming = Pick<Attribute, 'owner_stack_id' | 'key' | 'index'> & {
  index_id: number | null
  isReactivated?: boolean
}

const maxListed = 20
const maxShownCharacters = 100
/**
 * The maximum number of entities of a stack that is searched for the key while the head is locked. The writes of the
 * organization wait meanwhile: 10 ms for 10,000 entities, 70 to 100 ms for 100,000, 500 to 900 ms for a million.
 * Entities with 19 kB of values take twelve times as long.
 */
const maxSearched = 100_000

/**
 * Checks that an attribute can become unique. The head must be locked. Returns whether its index needs no fill, because
 * no entity has the key. Throws a Fault of 409 if the index is not ready, or if entities share a value.
 */
export async function checkUnique(
  tx: Transaction,
  { organization_id }: Definitions,
  { owner_stack_id, key, index, index_id, isReactivated }: Becoming,
  mayRead: (stack_id: number) => boolean = () => false,
): Promise<boolean> {
  const current = index?.id === index_id ? index : undefined
  if (!current?.ready) {
    const mayHaveValues = await findKeysToIndex({ tx, organization_id }, owner_stack_id, [key])
    if (mayHaveValues.size === 0) return true
    if (isReactivated) throwNotReactivated()
    if (!current) throwNotReady([{ path: pointer('unique'), message: needsIndex }])
    const { indexed, total } =
      (await readProgress({ db: tx, organization_id }, [current.id])).get(current.id) ?? current
    throwNotReady([
      { path: pointer('unique'), message: `needs the index, which has ${indexed} of about ${total} entities yet` },
    ])
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

/** A new attribute with its path in the request. */
type NewUnique = Pick<Attribute, 'owner_stack_id' | 'key'> & { path: string }

/**
 * Checks that no entity has the keys of new attributes. The head must be locked. Throws a Fault of 409 with the
 * attributes that may have values.
 */
export async function checkNewUnique(
  tx: Transaction,
  { organization_id }: Definitions,
  attributes: readonly NewUnique[],
): Promise<void> {
  const details: Detail[] = []
  for (const [owner_stack_id, ofOwner] of Map.groupBy(attributes, attribute => attribute.owner_stack_id)) {
    const keys = ofOwner.map(({ key }) => key)
    const toIndex = await findKeysToIndex({ tx, organization_id }, owner_stack_id, keys)
    for (const { key, path } of ofOwner)
      if (toIndex.has(key)) details.push({ path: `${path}${pointer('unique')}`, message: needsIndex })
  }
  if (details.length > 0) throwNotReady(details)
}

const needsIndex = 'needs an index of the stored values first: send `indexed: true` without `unique`'

/** The keys that entities have, or all keys if the stack is too large to search. */
async function findKeysToIndex(
  { tx, organization_id }: Within,
  owner_stack_id: number,
  keys: string[],
): Promise<ReadonlySet<string>> {
  const values = [organization_id, owner_stack_id, keys]
  const [found] = await tx.query<{ entities: number; carries: boolean }>(findCarrierSql, [...values, maxSearched])
  const { entities, carries } = found!
  if (entities >= maxSearched || (carries && keys.length === 1)) return new Set(keys)
  const carried = carries ? await tx.query<{ key: string }>(findCarriedKeysSql, values) : []
  return new Set(carried.map(({ key }) => key))
}

function throwNotReady(details: Detail[]): never {
  const message = 'The attribute cannot be unique yet. Retry when its `index_state` is `ready`.'
  refuse('invalid_parameter', message, { status: 409, details })
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
