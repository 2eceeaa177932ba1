import type { Filter } from '@kith/client'
import { filterOfAddress } from '../app/search-params.ts'
import type { Sort } from '../ui/virtual-table.tsx'

/** The state of a list, as its address carries it. */
export type ListSearch = {
  /** The text that was searched for. */
  text?: string
  /** A filter of the API. Beside a segment, it is the changed filter of the segment. */
  filter?: Filter
  /** The key of the chosen segment. */
  segment?: string
  /** The field of the order, with a `-` before it for a descending one. */
  sort?: string
  /** The names of the columns, separated by commas. */
  columns?: string
  /** Whether the dialog for a new person or record is open. */
  create?: 'yes'
}

/** Writes members of the address. Undefined removes one. */
export type Change = (changed: Partial<Record<keyof ListSearch, unknown>>, replace?: boolean) => void

/** Reads the address. What it does not understand is left out. */
export function validateListSearch(search: Record<string, unknown>): ListSearch {
  const { text, segment, sort, columns, create } = search
  const filter = filterOfAddress(search.filter)
  return {
    ...(typeof text === 'string' && text !== '' && { text }),
    ...(filter && { filter }),
    ...(typeof segment === 'string' && segment !== '' && { segment }),
    ...(typeof sort === 'string' && /^-?[a-z]/.test(sort) && { sort }),
    ...(typeof columns === 'string' && { columns }),
    ...(create === 'yes' && { create }),
  }
}

/** The order that `sort` of the address stands for. */
export function sortOf({ sort }: ListSearch): Sort | undefined {
  if (sort === undefined) return undefined
  return sort.startsWith('-') ? { field: sort.slice(1), direction: 'desc' } : { field: sort, direction: 'asc' }
}

export const sortText = ({ field, direction }: Sort): string => (direction === 'desc' ? `-${field}` : field)

/** The filter that the list applies: the changed filter of a segment takes its place. */
export function effectiveFilter({ filter, segment }: ListSearch): Filter | undefined {
  if (filter && Object.keys(filter).length > 0) return filter
  return segment === undefined ? undefined : ({ $segment: segment } as Filter)
}
