import type { Transaction } from '../../db/db.ts'
import { Fault } from '../../errors.ts'
import { type Definitions, peopleStackId } from '../../organizations/definitions.ts'
import type { DecidedRound, ErasedValues } from '../decide/decide-round.ts'
import { erasableValues, erasedRefusal, type Giving } from '../decide/erasable-values.ts'
import type { Write } from '../write-request.ts'
import { readTombstonesBeforeSql, readTombstonesSql } from './load-sql.ts'
import { deleteTombstonesSql } from './store-sql.ts'

/**
 * Tombstone stage: decides a round, and decides it again if a change would give a value of an erased person to somebody. Without an
 * erasure in the organization it issues no statement, nor for changes that give nobody an identifier.
 */
export async function decideUnlessErased(
  tx: Transaction,
  { organization_id, has_tombstones }: Definitions,
  decide: (erased?: ErasedValues) => Promise<DecidedRound>,
): Promise<DecidedRound> {
  const decided = await decide()
  if (!has_tombstones) return decided
  const values = valuesOf(decided, () => true)
  if (values.length === 0) return decided
  const found = await readErased(tx, organization_id, values)
  return found.size === 0 ? decided : decide({ asked: new Set(values), found })
}

/** Returns those of the values (erasable-values.ts) that belonged to a person who was erased. */
async function readErased(
  tx: Pick<Transaction, 'query'>,
  organization_id: number,
  values: string[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ value: string }>(readTombstonesSql, [organization_id, values])
  return new Set(rows.map(({ value }) => value))
}

/** The change that brings a person back: a restore or an unmerge. */
const returning = { stack_id: peopleStackId, operation: 'restore' } as const

/**
 * Returns those of the values of a person who returns that belonged to somebody who was erased before the person left by the change
 * `leftBy`, its deletion or merge. The person had them all the same, so it keeps them.
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
 * Checks the change by which an unmerge brings a person back. With `recreate`, forgets the tombstones of the values. Throws a Fault of
 * 409 if one belongs to a person who was erased since.
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
  const erased = await readErased(tx, organization_id, values)
  if (erased.size === 0) return
  if (erasedPeople === 'recreate') await tx.query(deleteTombstonesSql, [organization_id, [...erased]])
  else throw new Fault(erasedRefusal(given, erased)!)
}

/** Tombstone stage: forgets the tombstones of values that a request gave to somebody again with `erased=recreate`. */
export function forgetTombstones(tx: Transaction, set: DecidedRound): Promise<unknown>[] {
  const { organization_id, has_tombstones } = set.definitions
  if (!has_tombstones) return []
  const values = valuesOf(set, ({ erased }) => erased === 'recreate')
  return values.length === 0 ? [] : [tx.query(deleteTombstonesSql, [organization_id, values])]
}

function valuesOf({ accepted, definitions }: DecidedRound, isAsked: (write: Write) => boolean) {
  const values = new Set<string>()
  for (const { item, change, row, isPlaceholder } of accepted)
    if (item && !isPlaceholder && isAsked(item.write))
      for (const { value } of erasableValues(change, item.write, row, definitions.default_country)) values.add(value)
  return [...values]
}
