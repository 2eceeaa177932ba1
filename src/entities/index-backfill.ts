import { awaitPipelined, type Database, type Transaction } from '../db/db.ts'
import type { AttributeType } from '../organizations/definitions.ts'
import { lockHeadSql, readVersionsSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import { termsOf } from './index-keys.ts'
import {
  advanceFillSql,
  analyzeEntitiesSql,
  analyzeTermsSql,
  beginFillSql,
  claimFillSql,
  deleteFillsSql,
  deleteTermsSql,
  finishFillSql,
  holdValuesSql,
  indexTermsSql,
  readDroppedSql,
  readUnfilledSql,
  scanEntitiesSql,
} from './index-keys-sql.ts'

const entitiesPerBatch = 500
const termsPerDelete = 5_000
/** Bounds the wait for a locked row, because writers wait for the rows of the batch. A later run retries the batch. */
const fillLockTimeoutMs = 250

type Unfilled = { index_id: number; stack_id: number; key: string; type: AttributeType }
export type BackfillOptions = { signal?: Signal | undefined; entitiesPerBatch?: number }

/**
 * Fills the indexes of attributes from stored values, in small transactions, and deletes the keys of dropped indexes.
 * Writers maintain an index from its declaration on. A batch locks the rows that it reads, so it never stores an
 * outdated value. The backfill resumes where it or another process stopped. Returns the number of scanned entities.
 * Throws database errors; the caller retries later.
 */
export async function backfillIndexes(db: Database, options: BackfillOptions = {}): Promise<number> {
  const completed = completedVersions.get(db) ?? new Map<number, number>()
  completedVersions.set(db, completed)
  let scanned = 0
  for (const { organization_id, schema_version } of await db.query<Version>(readVersionsSql, [])) {
    if (completed.get(organization_id) === schema_version) continue
    const unfilled = await db.query<Unfilled>(readUnfilledSql, [organization_id])
    for (const index of unfilled) scanned += await fillIndex(db, organization_id, index, options)
    await removeDropped(db, organization_id, options)
    if (unfilled.length === 0 && !options.signal?.aborted) completed.set(organization_id, schema_version)
  }
  return scanned
}

type Version = { organization_id: number; schema_version: number }

// After a completed backfill, new work appears only when the definitions change. Idle organizations cost no query.
const completedVersions = new WeakMap<Database, Map<number, number>>()

async function fillIndex(db: Database, organization_id: number, index: Unfilled, options: BackfillOptions) {
  await db.query(analyzeEntitiesSql, [])
  await db.query(beginFillSql, [organization_id, index.index_id, index.stack_id])
  const limit = options.entitiesPerBatch ?? entitiesPerBatch
  let total = 0
  while (!options.signal?.aborted) {
    const scanned = await db.transaction(tx => fillBatch(tx, organization_id, index, limit), {
      lockTimeoutMs: fillLockTimeoutMs,
    })
    if (scanned === 'claimed by another') break
    total += scanned
    if (scanned < limit) {
      await finishFill(db, organization_id, index)
      break
    }
  }
  return total
}

async function finishFill(db: Database, organization_id: number, { index_id }: Unfilled) {
  await db.query(analyzeTermsSql, [])
  await db.transaction(async tx => {
    // Locks the head before the attribute, in the same order as changes of definitions do.
    await tx.query(lockHeadSql, [organization_id])
    await tx.query(finishFillSql, [organization_id, index_id])
  })
}

async function fillBatch(tx: Transaction, organization_id: number, index: Unfilled, limit: number) {
  const { index_id, stack_id, key, type } = index
  const [claim] = await tx.query<{ after_id: string }>(claimFillSql, [organization_id, index_id])
  if (!claim) return 'claimed by another'
  const entities = await tx.query<{ id: string; valued: boolean }>(scanEntitiesSql, [
    organization_id,
    stack_id,
    claim.after_id,
    limit,
    key,
  ])
  const last = entities.at(-1)
  if (!last) return 0
  const idsWithValue = entities.filter(entity => entity.valued).map(entity => entity.id)
  const values =
    idsWithValue.length === 0
      ? []
      : await tx.query<{ id: string; value: unknown }>(holdValuesSql, [organization_id, stack_id, idsWithValue, key])
  const newTerms = values.flatMap(({ id: entity_id, value: stored }) =>
    [...termsOf(type, stored)].map(value => ({ index_id, value, entity_id })),
  )
  const inserts =
    newTerms.length === 0 ? [] : [tx.query(indexTermsSql, [organization_id, '[]', JSON.stringify(newTerms)])]
  await awaitPipelined([
    ...inserts,
    tx.query(advanceFillSql, [organization_id, index_id, last.id, entities.length]),
    tx.commit(),
  ])
  return entities.length
}

async function removeDropped(db: Database, organization_id: number, { signal }: BackfillOptions) {
  for (const { index_id } of await db.query<{ index_id: number }>(readDroppedSql, [organization_id]))
    while (!signal?.aborted) {
      const [deleted] = await db.query<{ count: number }>(deleteTermsSql, [organization_id, index_id, termsPerDelete])
      if (deleted!.count < termsPerDelete) break
    }
  await db.query(deleteFillsSql, [organization_id])
}
