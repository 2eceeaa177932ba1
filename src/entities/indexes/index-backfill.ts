import { type Context, contextOf, perOrganizationData } from '../../db/context.ts'
import { type Database, dataKeyOf, type Transaction } from '../../db/db.ts'
import { deleteInSteps } from '../../db/delete-in-steps.ts'
import { perDatabase } from '../../db/per-database.ts'
import { changeOrganization, ownAuthor } from '../../organizations/change-organization.ts'
import { digestVersionsSql, readVersionsSql } from '../../organizations/definitions-sql.ts'
import type { Signal } from '../../process/signal.ts'
import type { AttributeType } from '../../values/attribute-rules.ts'
import { type Indexed, termsOf } from './index-keys.ts'
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
  scanEntitiesSql,
} from './index-keys-sql.ts'
import { computePhoneKeys } from './phone-keys.ts'
import { type SortField, sortFieldOf } from './sort-field.ts'
import { readSortValuesSql, readUnfilledSortsSql, scanIdsSql } from './sort-index-sql.ts'
import { sortTermOf } from './sort-terms.ts'

const entitiesPerBatch = 500
const termsPerDelete = 5_000

/** An index to fill: of the values of an attribute, or of a field that sorts. */
type Unfilled = { index_id: number; stack_id: number; type: AttributeType } & (
  | ({ key: string; sorts?: undefined } & Indexed)
  | { sorts: SortField }
)
export type BackfillOptions = { signal?: Signal | undefined; entitiesPerBatch?: number }

/**
 * Fills the indexes of attributes from stored values, in small transactions, deletes the keys of dropped indexes, and computes the keys of
 * phones anew after their country has changed.
 * Writers maintain an index from its declaration on. A batch locks the head as a writer does, so it never stores an
 * outdated value. The backfill resumes where it or another process stopped. Returns the number of scanned entities.
 * Throws database errors; the caller retries later.
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

// After a completed backfill, new work appears only when the definitions change. Idle organizations cost no query, and one statement
// tells that all are.
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
  while (!options.signal?.aborted) {
    const scanned = await fillBatch(context, index, limit)
    if (scanned === undefined) break
    total += scanned
    if (scanned < limit) {
      await finishFill(context, index)
      break
    }
  }
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
  const { index_id } = index
  return changeOrganization<number | undefined>(context, ownAuthor(), async ({ tx, organization_id }) => {
    const [fill] = await tx.query<{ after_id: string }>(readFillSql, [organization_id, index_id])
    if (!fill) return { changes: [], result: undefined }
    const range = [organization_id, index.stack_id, fill.after_id, limit]
    const { entities, terms } =
      index.sorts === undefined ? await holdTerms(tx, range, index) : await holdSortTerms(tx, range, index)
    const last = entities.at(-1)
    if (!last) return { changes: [], result: 0 }
    const newTerms = JSON.stringify(terms.map(term => ({ index_id, ...term })))
    return {
      statements: [
        ...(terms.length === 0 ? [] : [tx.query(insertKeysSql, [organization_id, newTerms])]),
        tx.query(advanceFillSql, [organization_id, index_id, last.id, entities.length]),
      ],
      changes: [],
      result: entities.length,
    }
  })
}

/** The entities of a batch in order of id, and their terms. */
type HeldTerms = { entities: { id: string }[]; terms: { value: string; entity_id: string }[] }

async function holdTerms(tx: Transaction, range: unknown[], attribute: Extract<Unfilled, Indexed>) {
  const { stack_id, key } = attribute
  const [organization_id] = range
  const entities = await tx.query<{ id: string; valued: boolean }>(scanEntitiesSql, [...range, key])
  const idsWithValue = entities.filter(entity => entity.valued).map(entity => entity.id)
  const values =
    idsWithValue.length === 0
      ? []
      : await tx.query<{ id: string; value: unknown }>(readValuesSql, [organization_id, stack_id, idsWithValue, key])
  const terms = values.flatMap(({ id: entity_id, value: stored }) =>
    [...termsOf(attribute, stored)].map(value => ({ value, entity_id })),
  )
  return { entities, terms } satisfies HeldTerms
}

async function holdSortTerms(
  tx: Transaction,
  range: unknown[],
  { stack_id, sorts, type }: Unfilled & { sorts: SortField },
) {
  const [organization_id] = range
  const entities = await tx.query<{ id: string }>(scanIdsSql, range)
  const [column, key] = sorts.kind === 'attribute' ? ['attributes', sorts.key] : [sorts.column, null]
  const ids = entities.map(({ id }) => id)
  const values = await tx.query<{ id: string; value: unknown }>(readSortValuesSql, [
    organization_id,
    stack_id,
    column,
    key,
    ids,
  ])
  const isTerm = sorts.kind === 'time'
  const terms = values.map(({ id, value }) => ({
    entity_id: id,
    value: isTerm ? String(value) : sortTermOf(type, value),
  }))
  return { entities, terms } satisfies HeldTerms
}

async function removeDropped({ db, organization_id }: Context, { signal }: BackfillOptions) {
  const limit = termsPerDelete
  for (const { index_id } of await db.query<{ index_id: number }>(readDroppedSql, [organization_id]))
    await deleteInSteps(db, deleteTermsSql, [organization_id, index_id, limit], { limit, signal })
  await db.query(deleteFillsSql, [organization_id])
}
