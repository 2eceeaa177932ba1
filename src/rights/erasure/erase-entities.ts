import { forgetAccesses } from '../../accesses/forget.ts'
import { segmentsFollowerName } from '../../changes/sql.ts'
import { keepErasedAnswersSql } from '../../consents/address-answers-sql.ts'
import type { Within } from '../../db/context.ts'
import { awaitPipelined } from '../../db/db.ts'
import type { StoredRow } from '../../entities/entity-row.ts'
import { eraseSearchWords } from '../../entities/indexes/search-index.ts'
import { searchFollowerName } from '../../entities/indexes/search-index-sql.ts'
import { buildErasure } from '../../entities/write/decide/decide.ts'
import { readRowsSql } from '../../entities/write/load/load-sql.ts'
import { type PlannedChange, storeChanges } from '../../entities/write/store/store.ts'
import { rememberNamesSql } from '../../entities/write/store/store-sql.ts'
import { insertFollowerSql, insertPausedFollowersSql } from '../../followers/sql.ts'
import { keepUnsealedLeaves } from '../../ledger/seal.ts'
import { followerName as ledgerFollower } from '../../ledger/sql.ts'
import type { Author, Locked } from '../../organizations/change-organization.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import { recordIdOf } from '../../values/formats.ts'
import { followerName as webhookFollower } from '../../webhooks/sql.ts'
import { type ErasedIdentifiers, noIdentifiers, readIdentifiers } from './erased-identifiers.ts'
import { erasedTables, type Subjects } from './erased-tables.ts'
import { insertLeavingSql, insertSegmentChecksSql, lockFollowersSql, readLastChangesSql } from './erased-tables-sql.ts'

/** An entity to erase, which exists or was deleted or merged. */
export type ErasureTarget = { stack_id: number; id: string }

type ErasureOptions = Author & {
  /** Whether the log of the entities is left to later transactions, because it is long. */
  keepsLog?: boolean
  /** Whether the links of other entities are left to later transactions, because there are many. */
  keepsLinks?: boolean
  /**
   * Whether to search stored responses and the access log for the entities. The first search reads all responses of a
   * day.
   */
  searchesCopies?: boolean
}

/** The number of rows that were deleted or emptied, by table. */
export type RemovedRows = Record<string, number>

export type Erased = {
  entities: (ErasureTarget & { version: number })[]
  identifiers: ErasedIdentifiers
  removed: RemovedRows
}

const allVersions = { after: 0, until: 2 ** 31 - 1 }

type LastChange = ErasureTarget & { version: number; operation: string }

/**
 * Reads the rows of the entities, and plans their erasures. An entity without a row was deleted or merged, and the log
 * has its version. An entity that was erased before, or never existed, gets no plan. The transaction has locked the
 * head.
 */
export async function planErasures(
  { tx, organization_id }: Within,
  targets: readonly ErasureTarget[],
): Promise<PlannedChange[]> {
  const rows = await tx.query<StoredRow>(readRowsSql, [organization_id, JSON.stringify(targets)])
  const rowById = new Map(rows.map(row => [row.id, row]))
  const rowless = targets.filter(({ id }) => !rowById.has(id)).map(({ id }) => id)
  const last = rowless.length === 0 ? [] : await tx.query<LastChange>(readLastChangesSql, [organization_id, rowless])
  const lastById = new Map(last.map(change => [change.id, change]))
  return targets.flatMap(({ stack_id, id }) => {
    const row = rowById.get(id)
    const previous = row ?? lastById.get(id)
    if (!previous || previous.stack_id !== stack_id || (!row && lastById.get(id)!.operation === 'erase')) return []
    return [{ stack_id, change: buildErasure(id, previous.version + 1, row), row }]
  })
}

/**
 * Erases entities in a transaction that has written nothing and has locked the head. Logs one change `erase` for each,
 * and removes the rows that erased-tables.ts lists.
 */
export async function eraseEntities(
  locked: Locked,
  planned: readonly PlannedChange[],
  { actor, request_id, keepsLog = false, keepsLinks = false, searchesCopies = true }: ErasureOptions,
): Promise<Erased> {
  const { tx, organization_id, definitions, at } = locked
  const entities = planned.map(({ stack_id, change: { id, version } }) => ({ stack_id, id, version }))
  if (entities.length === 0) return { entities, identifiers: noIdentifiers(), removed: {} }
  const ids = entities.map(({ id }) => id)
  const rows = planned.flatMap(({ row }) => row ?? [])
  const person = entities.filter(({ stack_id }) => stack_id === peopleStackId).map(({ id }) => id)
  const people = person.length > 0 ? [person] : []
  const hasSegments = definitions.last_segment_id > 0
  const members = hasSegments ? people : []
  await lockFollowers(locked, person.length > 0)
  const identifiers = await readIdentifiers(locked, { ids, people: person, rows })

  const removed: RemovedRows = { entities: rows.length }
  if (person.length > 0) await keepUnsealedLeaves(locked, person)
  addCount(removed, 'search_documents', await eraseSearchWords(locked, entities))
  await rememberErasedNames(locked, entities, identifiers.names)
  await storeChanges(tx, definitions, at, { actor, request_id }, planned)
  if (hasSegments) await tx.query(insertSegmentChecksSql, [organization_id, ids])
  for (const value of members) await tx.query(insertLeavingSql, [organization_id, value])
  const subjects: Subjects = {
    entities: [ids],
    ...{ people, person, members },
    addresses: people.map(ids => JSON.stringify({ people: ids, values: [...identifiers.values] })),
    targets: keepsLinks ? [] : [ids],
    log: keepsLog ? [] : [JSON.stringify(ids.map(id => ({ id, ...allVersions })))],
    values: [[...identifiers.values]],
    texts: searchesCopies ? [[...identifiers.texts, ...ids, ...ids.map(recordIdOf)]] : [],
  }
  for (const value of subjects.addresses) await tx.query(keepErasedAnswersSql, [organization_id, value])
  await eraseRows(locked, subjects, removed)
  if (searchesCopies) addCount(removed, 'access_batches', await forgetAccesses({ db: tx, organization_id }, ids))
  return { entities, identifiers, removed }
}

/**
 * Runs the statements of erased-tables.ts for these subjects in one flush, and adds the numbers of rows to `removed`.
 */
export async function eraseRows(
  { tx, organization_id }: Within,
  subjects: Partial<Subjects>,
  removed: RemovedRows,
): Promise<void> {
  const sent: { table: string; counting: Promise<{ count: number }[]> }[] = []
  for (const row of erasedTables) {
    const values: readonly unknown[] = subjects[row.of] ?? []
    for (const value of values)
      sent.push({ table: row.table, counting: tx.query<{ count: number }>(row.statement, [organization_id, value]) })
  }
  await awaitPipelined(sent.map(({ counting }) => counting))
  for (const { table, counting } of sent) addCount(removed, table, (await counting)[0]!.count)
}

/** Adds to the number of rows that were removed from a table. Tables without removed rows are not named. */
export function addCount(removed: RemovedRows, table: string, count: number): void {
  if (count > 0) removed[table] = (removed[table] ?? 0) + count
}

/**
 * Locks the followers until the erasure commits. No other erasure of the organization then changes rows of the log. A
 * follower that has already read answers, changes or rows cannot store them after the erasure: the ledger would store a
 * salt, a webhook the response of a receiver, the segments a member, and the search the words.
 */
export async function lockFollowers({ tx, organization_id }: Within, hasPeople: boolean): Promise<void> {
  if (hasPeople) await tx.query(insertFollowerSql, [organization_id, ledgerFollower])
  await tx.query(insertPausedFollowersSql, [organization_id, [searchFollowerName]])
  const names = [searchFollowerName, webhookFollower, ...(hasPeople ? [ledgerFollower, segmentsFollowerName] : [])]
  await tx.query(lockFollowersSql, [organization_id, names])
}

/**
 * Stores the versions of the names that erased entities had, because their changes no longer have the names. The names
 * of a stack share the highest version.
 */
async function rememberErasedNames(
  { tx, organization_id }: Within,
  entities: readonly { stack_id: number; version: number }[],
  namesByStack: ReadonlyMap<number, ReadonlySet<string>>,
): Promise<void> {
  const highest = new Map<number, number>()
  for (const { stack_id, version } of entities) highest.set(stack_id, Math.max(highest.get(stack_id) ?? 0, version))
  const names = [...namesByStack].flatMap(([stack_id, held]) =>
    [...held].map(external_id => ({ stack_id, external_id, version: highest.get(stack_id) ?? 0 })),
  )
  if (names.length > 0) await tx.query(rememberNamesSql, [organization_id, JSON.stringify(names)])
}
