import type { Database, Transaction } from '../db/db.ts'
import type { Signal } from '../signal.ts'
import type { Read } from './entity-row.ts'
import { findEntitySql, readRelatedAscendingSql, readRelatedDescendingSql } from './pagination-sql.ts'

/**
 * Which entities of an order by id: `size` of them after `after_id`, which need not exist. Of an entity whose row has more than
 * `rowOctets` only the id is read; without that bound, every row.
 */
export type Position = {
  direction: 'asc' | 'desc'
  after_id?: string | undefined
  size: number
  rowOctets?: number | undefined
}

/** As large as PostgreSQL's integers: every row. */
export const unboundedOctets = 2 ** 31 - 1

export const octetsOf = ({ rowOctets = unboundedOctets }: Position): number => rowOctets

/** Never shorter than asked for before the end. */
export type Page = { reads: Read[]; has_more: boolean }

// No id is one of these, so that a first page is a page like any other.
const beginnings = { asc: '00000000-0000-0000-0000-000000000000', desc: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }

/** The id that a page begins behind. */
export const startOf = ({ direction, after_id }: Pick<Position, 'direction' | 'after_id'>): string =>
  after_id ?? beginnings[direction]

/** One more is read than asked for, to know whether there are more. */
export const sizeToRead = ({ size }: Position): number => size + 1

export function pageOf(reads: Read[], { size }: Position): Page {
  return { reads: reads.slice(0, size), has_more: reads.length > size }
}

/** The internal identifier of the entity of a stack that is addressed; undefined where there is none. */
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
  return found?.id
}

/** Whose neighbours, in which stack, and by which relationships: those of the entity itself, and those that point to it. */
export type Neighbourhood = { id: string; stack_id: number; outgoing: number[]; incoming: number[] }

/** A page of the entities that are linked with one, each once, in order of their ids. */
export async function readRelated(
  db: Database | Transaction,
  organization_id: number,
  { id, stack_id, outgoing, incoming }: Neighbourhood,
  position: Position,
  signal?: Signal,
): Promise<Page> {
  const statement = position.direction === 'asc' ? readRelatedAscendingSql : readRelatedDescendingSql
  const [start, size] = [startOf(position), sizeToRead(position)]
  const values = [organization_id, octetsOf(position), stack_id, start, size, id, outgoing, incoming]
  return pageOf(await db.query<Read>(statement, values, signal), position)
}
