import { type Database, flushed, type Transaction } from '../db/db.ts'
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

const entitiesAtOnce = 500
const termsAtOnce = 5_000
/** A row that somebody holds must not make others wait for the rows held here: the batch is tried again later. */
const fillLockTimeoutMs = 250

type Unfilled = { index_id: number; stack_id: number; key: string; type: AttributeType }
export type FillOptions = { signal?: Signal | undefined; entitiesAtOnce?: number }

/**
 * Fills the indexes of attributes from stored values, in small transactions, and removes what is left of indexes that
 * nobody has any more. Writers keep an index from the moment it is declared; a batch holds the rows it reads, so it
 * never stores what they have changed meanwhile. It goes on where it, or another process, has stopped. Answers how
 * many entities it has been over. Throws what the database throws: whoever calls tries again later.
 */
export async function backfillIndexes(db: Database, options: FillOptions = {}): Promise<number> {
  const settled = settledVersions.get(db) ?? new Map<number, number>()
  settledVersions.set(db, settled)
  let scanned = 0
  for (const { organization_id, schema_version } of await db.query<Version>(readVersionsSql, [])) {
    if (settled.get(organization_id) === schema_version) continue
    const unfilled = await db.query<Unfilled>(readUnfilledSql, [organization_id])
    for (const index of unfilled) scanned += await fillIndex(db, organization_id, index, options)
    await removeDropped(db, organization_id, options)
    if (unfilled.length === 0 && !options.signal?.aborted) settled.set(organization_id, schema_version)
  }
  return scanned
}

type Version = { organization_id: number; schema_version: number }

// Where nothing was left to do, nothing comes up before the definitions change: idle organizations cost no query.
const settledVersions = new WeakMap<Database, Map<number, number>>()

async function fillIndex(db: Database, organization_id: number, index: Unfilled, options: FillOptions) {
  await db.query(analyzeEntitiesSql, [])
  await db.query(beginFillSql, [organization_id, index.index_id, index.stack_id])
  const limit = options.entitiesAtOnce ?? entitiesAtOnce
  let total = 0
  while (!options.signal?.aborted) {
    const scanned = await db.transaction(tx => fillBatch(tx, organization_id, index, limit), {
      lockTimeoutMs: fillLockTimeoutMs,
    })
    if (scanned === 'claimed by another') break
    total += scanned
    if (scanned < limit) {
      await finish(db, organization_id, index)
      break
    }
  }
  return total
}

async function finish(db: Database, organization_id: number, { index_id }: Unfilled) {
  await db.query(analyzeTermsSql, [])
  await db.transaction(async tx => {
    // The head before the attribute, as whoever changes a definition takes them.
    await tx.query(lockHeadSql, [organization_id])
    await tx.query(finishFillSql, [organization_id, index_id])
  })
}

async function fillBatch(tx: Transaction, organization_id: number, index: Unfilled, limit: number) {
  const { index_id, stack_id, key, type } = index
  const [claim] = await tx.query<{ after_id: string }>(claimFillSql, [organization_id, index_id])
  if (!claim) return 'claimed by another'
  const found = await tx.query<{ id: string; valued: boolean }>(scanEntitiesSql, [
    organization_id,
    stack_id,
    claim.after_id,
    limit,
    key,
  ])
  const last = found.at(-1)
  if (!last) return 0
  const valued = found.filter(entity => entity.valued).map(entity => entity.id)
  const values =
    valued.length === 0
      ? []
      : await tx.query<{ id: string; value: unknown }>(holdValuesSql, [organization_id, stack_id, valued, key])
  const made = values.flatMap(({ id, value }) => [...termsOf(type, value)].map(v => ({ n: index_id, v, e: id })))
  const stored = made.length === 0 ? [] : [tx.query(indexTermsSql, [organization_id, '[]', JSON.stringify(made)])]
  await flushed([...stored, tx.query(advanceFillSql, [organization_id, index_id, last.id, found.length]), tx.commit()])
  return found.length
}

async function removeDropped(db: Database, organization_id: number, { signal }: FillOptions) {
  for (const { index_id } of await db.query<{ index_id: number }>(readDroppedSql, [organization_id]))
    while (!signal?.aborted) {
      const [gone] = await db.query<{ count: number }>(deleteTermsSql, [organization_id, index_id, termsAtOnce])
      if (gone!.count < termsAtOnce) break
    }
  await db.query(deleteFillsSql, [organization_id])
}
