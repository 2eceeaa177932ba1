import { firstId, lastId } from '../../values/formats.ts'
import type { Projection } from './projection.ts'

/**
 * The position of a page in the order by id: `size` entities after `after_id`, which need not exist. In the order of a
 * sort index, `after_term` is the term of that entity. If a row has more than `maxRowBytes`, only its id is read. By
 * default the row size is not limited. With a projection, only its members are read.
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

/** The id that the page starts after. */
export const startOf = ({ direction, after_id }: Pick<Position, 'direction' | 'after_id'>): string =>
  after_id ?? (direction === 'asc' ? firstId : lastId)

/** One entity more than the page size is read, to tell whether more follow. */
export const sizeToRead = ({ size }: Position): number => size + 1

/** How many entities match, and the number of the last change that the count includes. */
export type Count = { count: number; sequence: number }
