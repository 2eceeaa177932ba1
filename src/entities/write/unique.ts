import type { Reading } from '../../db/context.ts'
import { type IndexedAttribute, peopleStackId } from '../../organizations/definitions.ts'
import { createRefusal, type Detail, pointer, type Refusal } from '../../values/errors.ts'
import { recordIdOf } from '../../values/formats.ts'
import type { Target } from '../entity-row.ts'
import { termOf } from '../indexes/index-keys.ts'
import type { Write } from '../write-request.ts'
import { findHoldersSql } from './load/load-sql.ts'

/**
 * A value of a unique attribute, which only one entity may have. `key` is a map key that differs from that of any name.
 */
export type Claim = { attribute: IndexedAttribute; value: unknown; term: string; key: string }

/** The entities that have claimed values, by the key of the claim. */
export type Holders = Pick<ReadonlyMap<string, readonly Target[]>, 'get'>

/** Returns the claims of values. Objects, arrays and null were stored before the declaration, and claim nothing. */
export function claimsOf(
  attributes: readonly IndexedAttribute[] | undefined,
  values: Readonly<Record<string, unknown>> | undefined,
): Claim[] {
  const claims: Claim[] = []
  for (const attribute of attributes ?? []) {
    const value = values && Object.hasOwn(values, attribute.key) ? values[attribute.key] : undefined
    const claim = claimOf(attribute, value)
    if (claim) claims.push(claim)
  }
  return claims
}

export function claimOf(attribute: IndexedAttribute, value: unknown): Claim | undefined {
  const term = termOf(attribute.type, value)
  return term === undefined
    ? undefined
    : { attribute, value, term, key: `unique\n${attribute.id}\n${JSON.stringify(value)}` }
}

/** The refusal of a write if an entity other than `id` has one of its values. */
export function takenRefusal(
  claims: readonly Claim[],
  id: string,
  write: Pick<Write, 'stack_id' | 'mayRead'>,
  holders: Holders | undefined,
): Refusal | undefined {
  const details = claims.flatMap(({ attribute, key }): Detail[] => {
    const other = holders?.get(key)?.find(holder => holder.id !== id)
    const path = pointer('attribute_values', attribute.key)
    return other ? [{ path, message: `is already the value of ${describe(other, write)}` }] : []
  })
  if (details.length === 0) return undefined
  return createRefusal('duplicate_entry', 'Another entity has a value that is unique.', { details })
}

function describe({ id, external_id }: Target, { stack_id, mayRead }: Pick<Write, 'stack_id' | 'mayRead'>): string {
  const isPerson = stack_id === peopleStackId
  const noun = isPerson ? 'person' : 'record'
  if (!mayRead) return `another ${noun}`
  if (external_id !== null) return `the ${noun} with the external_id ${external_id}`
  return isPerson ? `the person with the id ${id}` : `the record with the record_id ${recordIdOf(id)}`
}

/**
 * Finds up to two entities for each claim, so that one of them is not the claiming entity. Issues no statement without
 * a claim.
 */
export async function findHolders(
  { db, organization_id }: Reading,
  claims: readonly Claim[],
): Promise<ReadonlyMap<string, readonly Target[]>> {
  if (claims.length === 0) return noHolders
  const asked = claims.map(({ attribute: { owner_stack_id: stack_id, index, key }, term, value }, number) => ({
    ...{ number, stack_id, index_id: index.id, term, key, value },
  }))
  const rows = await db.query<Target & { number: number }>(findHoldersSql, [organization_id, JSON.stringify(asked)])
  return Map.groupBy(rows, ({ number }) => claims[number]!.key)
}

const noHolders: ReadonlyMap<string, readonly Target[]> = new Map()
