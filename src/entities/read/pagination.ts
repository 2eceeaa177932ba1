import { awaitPipelined, type Database, type Transaction } from '../../db/db.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import type { Signal } from '../../signal.ts'
import type { ReadEntity } from '../entity-row.ts'
import { countRelatedSql, findEntitySql, readProjectedRelatedSql, readRelatedSql } from './pagination-sql.ts'
import { type Projection, projectionValues } from './projection.ts'
import { findPersonByAnyIdentifier } from './read-sql.ts'

/**
 * The position of a page in the order by id: `size` entities after `after_id`, which need not exist. In the order of a sort
 * index, `after_term` is the term of that entity. If a row has more than `maxRowBytes`, only its id is read. By default the
 * row size is not limited. With a projection, only its members are read.
 */
export type Position = {
  direction: 'asc' | 'desc'
  after_id?: string | undefined
  after_term?: string | undefined
  size: number
  maxRowBytes?: number | undefined
  projection?: Projection | undefined
}

/** A read at a position. With `isCounted`, it also counts the entities of all pages, as of the same moment. */
export type PositionToRead = Position & { isCounted?: boolean | undefined }

/** The largest integer of PostgreSQL: no limit. */
export const unlimitedRowBytes = 2 ** 31 - 1

export const maxRowBytesOf = ({ maxRowBytes = unlimitedRowBytes }: Position): number => maxRowBytes

/** A page has fewer entities than requested only at the end. */
export type Page = { reads: ReadEntity[]; has_more: boolean }

// No entity has these ids, so the first page needs no special case.
const startIds = { asc: '00000000-0000-0000-0000-000000000000', desc: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }

/** The id that the page starts after. */
export const startOf = ({ direction, after_id }: Pick<Position, 'direction' | 'after_id'>): string =>
  after_id ?? startIds[direction]

/** One entity more than the page size is read, to tell whether more follow. */
export const sizeToRead = ({ size }: Position): number => size + 1

/** Builds a page from the entities of a read of {@link sizeToRead}. */
export function pageOf(reads: ReadEntity[], { size }: Position): Page {
  return { reads: reads.slice(0, size), has_more: reads.length > size }
}

/**
 * Reads the internal identifier of the addressed entity of a stack; undefined if it does not exist. A person is also found by a
 * further identifier.
 */
export async function findEntity(
  db: Database,
  organization_id: number,
  stack_id: number,
  address: { id: string } | { external_id: string },
  signal?: Signal,
): Promise<string | undefined> {
  const [by, identifier] =
    'id' in address ? (['id', address.id] as const) : (['external_id', address.external_id] as const)
  const [found] = await db.query<{ id: string }>(findEntitySql[by], [organization_id, stack_id, identifier], signal)
  if (found || stack_id !== peopleStackId) return found?.id
  const [person] = await db.query<{ id: string }>(findPersonByAnyIdentifier[by], [organization_id, identifier], signal)
  return person?.id
}

/**
 * A query for the entities of one stack that are linked with the entity `id`. `outgoing` and `incoming` are the ids of
 * the relationship attributes in each direction.
 */
export type RelatedQuery = { id: string; stack_id: number; outgoing: number[]; incoming: number[] }

/** Reads a page of the entities linked with one entity, each once, in order of id. */
export async function readRelated(
  db: Database,
  organization_id: number,
  { id, stack_id, outgoing, incoming }: RelatedQuery,
  { isCounted, ...position }: PositionToRead,
  signal?: Signal,
): Promise<Page & { counted?: Count }> {
  const { direction, projection } = position
  const [start, size] = [startOf(position), sizeToRead(position)]
  const values = [organization_id, maxRowBytesOf(position), stack_id, start, size, id, outgoing, incoming]
  const read = (on: Database | Transaction) =>
    projection
      ? on.query<ReadEntity>(readProjectedRelatedSql[direction], [...values, ...projectionValues(projection)], signal)
      : on.query<ReadEntity>(readRelatedSql[direction], values, signal)
  if (!isCounted) return pageOf(await read(db), position)
  const count = (tx: Transaction) =>
    tx.query<Count>(countRelatedSql, [organization_id, stack_id, id, outgoing, incoming])
  const { found, counted } = await readAndCount(db, read, count, signal)
  return { ...pageOf(found, position), counted }
}

/** How many entities match, and the number of the last change that the count includes. */
export type Count = { count: number; sequence: number }

/** Runs a read and a statement that counts, as of the same moment and in one round trip. */
export function readAndCount<T>(
  db: Database,
  read: (tx: Transaction) => Promise<T>,
  count: (tx: Transaction) => Promise<Count[]>,
  signal?: Signal,
): Promise<{ found: T; counted: Count }> {
  return db.transaction(
    async tx => {
      const [reading, counting] = [read(tx), count(tx)]
      await awaitPipelined([reading, counting, tx.commit()])
      const [counted] = await counting
      return { found: await reading, counted: counted! }
    },
    { signal, readsFirst: true, isSnapshot: true },
  )
}
