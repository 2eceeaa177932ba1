import type { Reading } from '../../db/context.ts'
import type { Transaction } from '../../db/db.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import { Fault } from '../../values/errors.ts'
import { profileChanges } from './decide/decide.ts'
import { erasableValues, erasedRefusal, type Giving } from './decide/erasable-values.ts'
import { readTombstonesBeforeSql, readTombstonesSql } from './load/load-sql.ts'
import { type Loaded, rowOf } from './load/loaded.ts'
import { addressedName, type Item, nameKey } from './plan.ts'
import type { DecidedRound } from './round.ts'
import { deleteTombstonesSql } from './store/store-sql.ts'

/**
 * Read stage: returns the values that items may give to a person and that belonged to an erased person. It issues no
 * statement if the organization has no erasure, or if the items give no identifier to a person.
 */
export async function readGivenTombstones(
  tx: Transaction,
  { organization_id, has_tombstones, default_country }: Definitions,
  loaded: Omit<Loaded, 'erased'>,
): Promise<ReadonlySet<string> | undefined> {
  if (!has_tombstones) return undefined
  const values = loaded.items.flatMap(item => givenValues(item, loaded, default_country))
  return values.length === 0 ? undefined : readErased({ db: tx, organization_id }, [...new Set(values)])
}

/** The values that an item gives to a person if it is accepted: at least those that its change gives. */
function givenValues(item: Item, loaded: Omit<Loaded, 'erased'>, country: string | null): string[] {
  const { write, plan } = item
  const row = rowOf(loaded, item)
  const deleted = loaded.deleted.get(item)
  const missing = [...plan.links.values()].flatMap(({ references }) =>
    references.flatMap(name => ('id' in name || loaded.ids.has(nameKey(name)) ? [] : { name, pointer: '' })),
  )
  const given: Giving = {
    operation: write.operation,
    external_id: row ? row.external_id : (addressedName(write)?.external_id ?? null),
    columns: deleted?.columns ?? profileChanges(row, write),
    kept: deleted?.kept,
    missing,
    ...(write.alias !== undefined && { aliases: [write.alias] }),
  }
  return erasableValues(given, write, row, country).map(({ value }) => value)
}

/** Returns those of the values (erasable-values.ts) that belonged to an erased person. */
async function readErased({ db: tx, organization_id }: Reading, values: string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ value: string }>(readTombstonesSql, [organization_id, values])
  return new Set(rows.map(({ value }) => value))
}

/** The change that brings a person back: a restore or an unmerge. */
const returning = { stack_id: peopleStackId, operation: 'restore' } as const

/**
 * Returns the values of a returning person that already had a tombstone when the person left by the change `leftBy`,
 * its deletion or merge. The person had them nevertheless, so it keeps them.
 */
export async function readKept(
  tx: Transaction,
  { organization_id, has_tombstones, default_country }: Definitions,
  change: Giving,
  leftBy: number,
): Promise<ReadonlySet<string> | undefined> {
  if (!has_tombstones) return undefined
  const values = erasableValues(change, returning, undefined, default_country).map(({ value }) => value)
  if (values.length === 0) return undefined
  const rows = await tx.query<{ value: string }>(readTombstonesBeforeSql, [organization_id, values, leftBy])
  return new Set(rows.map(({ value }) => value))
}

/**
 * Checks the change by which an unmerge brings a person back. With `recreate`, deletes the tombstones of its values.
 * Throws a Fault of 409 if a value belongs to a person who was erased since.
 */
export async function checkReturn(
  tx: Transaction,
  { organization_id, has_tombstones, default_country }: Definitions,
  change: Giving,
  erasedPeople: 'refuse' | 'recreate',
): Promise<void> {
  if (!has_tombstones) return
  const given = erasableValues(change, returning, undefined, default_country)
  const values = given.map(({ value }) => value)
  const erased = await readErased({ db: tx, organization_id }, values)
  if (erased.size === 0) return
  if (erasedPeople === 'recreate') await tx.query(deleteTombstonesSql, [organization_id, [...erased]])
  else throw new Fault(erasedRefusal(given, erased)!)
}

/** Tombstone stage: deletes the tombstones of values that a request gave to a person again with `erased=recreate`. */
export function forgetTombstones(tx: Transaction, { definitions, accepted }: DecidedRound): Promise<unknown>[] {
  const { organization_id, has_tombstones, default_country } = definitions
  if (!has_tombstones) return []
  const values = new Set<string>()
  for (const { item, change, row, isPlaceholder } of accepted)
    if (item?.write.erased === 'recreate' && !isPlaceholder)
      for (const { value } of erasableValues(change, item.write, row, default_country)) values.add(value)
  return values.size === 0 ? [] : [tx.query(deleteTombstonesSql, [organization_id, [...values]])]
}
