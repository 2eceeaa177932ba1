import { awaitPipelined, type Database, type Transaction } from '../db/db.ts'
import type { StoredRow } from '../entities/entity-row.ts'
import { analyzeEntitiesSql } from '../entities/indexes/index-keys-sql.ts'
import { type KeyFields, matchKeys } from '../entities/match-keys.ts'
import { lockHead } from '../organizations/head.ts'
import type { Signal } from '../signal.ts'
import { fillKeysSql, listUnfilledSql, readWithoutKeysSql } from './key-fill-sql.ts'

const peoplePerBatch = 500

export type KeyFillOptions = { signal?: Signal | undefined; peoplePerBatch?: number }

/**
 * Computes the keys of people whom an earlier release stored, in small transactions. Each locks the head as a writer does, so it never
 * stores a key of an outdated value. The fill goes on where it or another process stopped. Returns the number of people. Throws
 * database errors; the caller retries later.
 */
export async function fillKeys(db: Database, options: KeyFillOptions = {}): Promise<number> {
  let filled = 0
  for (const { organization_id } of await db.query<{ organization_id: number }>(listUnfilledSql, []))
    filled += await fillOrganization(db, organization_id, options)
  // Look-ups by the new keys need statistics of them.
  if (filled > 0) await db.query(analyzeEntitiesSql, [])
  return filled
}

const firstId = '00000000-0000-0000-0000-000000000000'

async function fillOrganization(db: Database, organization_id: number, options: KeyFillOptions): Promise<number> {
  const { signal, peoplePerBatch: limit = peoplePerBatch } = options
  let filled = 0
  for (let after: string | undefined = firstId; after !== undefined && !signal?.aborted; ) {
    const start: string = after
    const ids: string[] = await db.transaction(tx => fillBatch(tx, organization_id, start, limit))
    filled += ids.length
    after = ids.at(-1)
  }
  return filled
}

type Unfilled = Pick<StoredRow, 'id' | 'ctid'> & KeyFields

/** Returns the ids of the people who have keys now. */
async function fillBatch(tx: Transaction, organization_id: number, after: string, limit: number): Promise<string[]> {
  await lockHead(tx, organization_id)
  const people = await tx.query<Unfilled>(readWithoutKeysSql, [organization_id, after, limit])
  if (people.length === 0) return []
  const keyed = people.map(person => ({ id: person.id, ctid: person.ctid, ...matchKeys(person) }))
  await awaitPipelined([tx.query(fillKeysSql, [organization_id, JSON.stringify(keyed)]), tx.commit()])
  return people.map(({ id }) => id)
}
