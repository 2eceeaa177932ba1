import { type Context, contextOf, perOrganizationData, type Within } from '../../db/context.ts'
import { type Database, dataKeyOf } from '../../db/db.ts'
import { deleteInSteps } from '../../db/delete-in-steps.ts'
import { perDatabase } from '../../db/per-database.ts'
import { changeOrganization, ownAuthor } from '../../organizations/change-organization.ts'
import { digestVersionsSql, readVersionsSql } from '../../organizations/definitions-sql.ts'
import type { Signal } from '../../process/signal.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { type Indexed, type Term, termsOf } from './index-keys.ts'
import {
  advanceFillSql,
  analyzeEntitiesSql,
  analyzeTermsSql,
  beginFillSql,
  deleteFillsSql,
  deleteTermsSql,
  finishFillSql,
  insertKeysSql,
  readDroppedSql,
  readFillSql,
  readUnfilledSql,
  readValuesSql,
  scanIdsSql,
} from './index-keys-sql.ts'
import { computePhoneKeys } from './phone-keys.ts'
import { type SortField, sortFieldOf, sortTermOf } from './sort-field.ts'
import { readSortValuesSql, readUnfilledSortsSql } from './sort-index-sql.ts'

const entitiesPerBatch = 500
const termsPerDelete = 5_000

/** An index to fill: of the values of an attribute, or of a field that sorts. */
type Unfilled = { index_id: number; stack_id: number; type: AttributeType } & (
  | ({ key: string; sorts?: undefined } & Indexed)
  | { sorts: SortField }
)
export type BackfillOptions = { signal?: Signal | undefined; entitiesPerBatch?: number }

/**
 * Fills the indexes of attributes from stored values, in small transactions. Deletes the keys of dropped indexes, and
 * recomputes the keys of phones after their country has changed. Writers maintain an index from its declaration on. A
 * batch locks the head as a writer does, so it never stores an outdated value. The backfill resumes where it or another
 * process stopped. Returns the number of scanned entities. Throws database errors; the caller retries later.
 */
export async function backfillIndexes(db: Database, options: BackfillOptions = {}): Promise<number> {
  const dataKey = dataKeyOf(db)
  const filled = filledIndexes(db)
  const [versions] = await db.query<{ digest: string | null }>(digestVersionsSql, [])
  if (filled.dataKey === dataKey && filled.digest === versions!.digest) return 0
  let scanned = 0
  let isComplete = true
  for (const { organization_id, schema_version } of await db.query<Version>(readVersionsSql, [])) {
    const context = contextOf(db, organization_id)
    const completed = completedFills(context)
    if (completed.version === schema_version) continue
    const unfilled = [
      ...(await db.query<Unfilled>(readUnfilledSql, [organization_id])),
      ...(await readUnfilledSorts(context)),
    ]
    scanned += await computePhoneKeys(context, options)
    for (const index of unfilled) scanned += await fillIndex(context, index, options)
    await removeDropped(context, options)
    if (unfilled.length === 0 && !options.signal?.aborted) completed.version = schema_version
    else isComplete = false
  }
  if (isComplete) Object.assign(filled, { dataKey, digest: versions!.digest })
  return scanned
}

type Version = { organization_id: number; schema_version: number }

// After a completed backfill, new work appears only when the definitions change. An idle organization costs no query:
// one statement checks all organizations.
type Filled = { dataKey?: object; digest?: string | null }
const filledIndexes = perDatabase((): Filled => ({}))
const completedFills = perOrganizationData((): { version?: number } => ({}))

async function readUnfilledSorts({ db, organization_id }: Context): Promise<Unfilled[]> {
  type Row = { index_id: number; stack_id: number; field: string; type: AttributeType | null }
  const rows = await db.query<Row>(readUnfilledSortsSql, [organization_id])
  return rows.flatMap(({ field, type, ...index }) => {
    const sorts = sortFieldOf(field, index.stack_id)
    return sorts ? [{ ...index, type: type ?? 'text', sorts }] : []
  })
}

async function fillIndex(context: Context, index: Unfilled, options: BackfillOptions) {
  const { db, organization_id } = context
  await db.query(analyzeEntitiesSql, [])
  await db.query(beginFillSql, [organization_id, index.index_id, index.stack_id])
  const limit = options.entitiesPerBatch ?? entitiesPerBatch
  let total = 0
  let scanned: number | undefined = limit
  while (scanned === limit && !options.signal?.aborted) {
    scanned = await fillBatch(context, index, limit)
    total += scanned ?? 0
  }
  if (scanned !== undefined && scanned < limit) await finishFill(context, index)
  return total
}

async function finishFill(context: Context, { index_id }: Unfilled) {
  await context.db.query(analyzeTermsSql, [])
  await changeOrganization(context, ownAuthor(), async ({ tx, organization_id, head }) => ({
    statements: [tx.query(finishFillSql, [organization_id, index_id, head.schema_version + 1])],
    changes: [],
    result: undefined,
  }))
}

/** Returns the number of scanned entities. Undefined if the index was dropped or is ready. */
function fillBatch(context: Context, index: Unfilled, limit: number): Promise<number | undefined> {
  const { index_id, stack_id } = index
  return changeOrganization<number | undefined>(context, ownAuthor(), async ({ tx, organization_id }) => {
    const [fill] = await tx.query<{ after_id: string }>(readFillSql, [organization_id, index_id])
    if (!fill) return { changes: [], result: undefined }
    const entities = await tx.query<{ id: string }>(scanIdsSql, [organization_id, stack_id, fill.after_id, limit])
    const last = entities.at(-1)
    if (!last) return { changes: [], result: 0 }
    const ids = entities.map(({ id }) => id)
    const terms = await readTerms({ tx, organization_id }, index, ids)
    return {
      statements: [
        ...(terms.length === 0 ? [] : [tx.query(insertKeysSql, [organization_id, JSON.stringify(terms)])]),
        tx.query(advanceFillSql, [organization_id, index_id, last.id, entities.length]),
      ],
      changes: [],
      result: entities.length,
    }
  })
}

async function readTerms({ tx, organization_id }: Within, index: Unfilled, ids: string[]): Promise<Term[]> {
  const { index_id, stack_id, type } = index
  const values = [organization_id, stack_id, ids]
  type Row = { id: string; value: unknown }
  if (index.sorts === undefined) {
    const rows = await tx.query<Row>(readValuesSql, [...values, index.key])
    return rows.flatMap(row => [...termsOf(index, row.value)].map(value => ({ index_id, value, entity_id: row.id })))
  }
  const { sorts } = index
  const [column, key] = sorts.kind === 'attribute' ? ['attributes', sorts.key] : [sorts.column, null]
  const rows = await tx.query<Row>(readSortValuesSql, [...values, column, key])
  const termFor = (value: unknown) => (sorts.kind === 'time' ? String(value) : sortTermOf(type, value))
  return rows.map(({ id, value }) => ({ index_id, value: termFor(value), entity_id: id }))
}

async function removeDropped({ db, organization_id }: Context, { signal }: BackfillOptions) {
  const limit = termsPerDelete
  for (const { index_id } of await db.query<{ index_id: number }>(readDroppedSql, [organization_id]))
    await deleteInSteps(db, deleteTermsSql, [organization_id, index_id, limit], { limit, signal })
  await db.query(deleteFillsSql, [organization_id])
}
