import type { Database, Transaction } from '../../db/db.ts'
import type { Definitions } from '../../organizations/definitions.ts'
import type { ReadState } from '../decide/decide-set.ts'
import type { Target } from '../entity-row.ts'
import type { Item } from './plan-write.ts'
import { type Claim, claimsOf, type Holders } from './unique-claims.ts'
import { findHoldersSql } from './unique-sql.ts'

/** Unique stage: finds the entities that have the values that items claim. Issues no statement without a claim. */
export function findHoldersFor(
  tx: Transaction,
  organization_id: number,
  items: readonly Item[],
): Promise<Holders | undefined> {
  const claims = items.flatMap(({ plan }) => plan.claims ?? [])
  return claims.length === 0 ? noHolders : findHolders(tx, organization_id, claims)
}

const noHolders = Promise.resolve(undefined)

/** As {@link findHoldersFor}, for the values that restores bring back. */
export function findHoldersOfDeleted(
  tx: Transaction,
  { organization_id, unique }: Definitions,
  deleted: ReadState['deleted'],
): Promise<Holders | undefined> {
  const claims = [...deleted].flatMap(([{ write }, { attributes }]) => claimsOf(unique.get(write.stack_id), attributes))
  return claims.length === 0 ? noHolders : findHolders(tx, organization_id, claims)
}

/** Finds up to two entities for each claim, so one that is not the claiming entity itself. */
export async function findHolders(
  db: Pick<Database, 'query'>,
  organization_id: number,
  claims: readonly Claim[],
): Promise<Holders> {
  const asked = claims.map((claim, number) => ({ number, ...parametersOf(claim) }))
  const rows = await db.query<Target & { number: number }>(findHoldersSql, [organization_id, JSON.stringify(asked)])
  const holders = new Map<string, Target[]>()
  for (const { number, ...holder } of rows) {
    const { key } = claims[number]!
    holders.set(key, [...(holders.get(key) ?? []), holder])
  }
  return holders
}

const parametersOf = ({ attribute, term, value }: Claim) => ({
  stack_id: attribute.owner_stack_id,
  index_id: attribute.index.id,
  term,
  key: attribute.key,
  value,
})
