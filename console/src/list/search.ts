import type { Filter } from '@kith/client'
import { addressReader, anyText, filterOfAddress, oneOf, text, textLike } from '../app/search-params.ts'
import type { Sort } from '../ui/virtual-table.tsx'

/** The state of a list, from its address. */
export const validateListSearch = addressReader({
  /** The searched text. */
  text,
  /** A filter of the API. Beside a segment, it is the changed filter of the segment. */
  filter: filterOfAddress,
  /** The key of the chosen segment. */
  segment: text,
  /** The field of the order, with a `-` before it for a descending one. */
  sort: textLike(/^-?[a-z]/),
  /** The names of the columns, separated by commas. */
  columns: anyText,
  /** Whether the dialog for a new person or record is open. */
  create: oneOf(['yes']),
})
export type ListSearch = ReturnType<typeof validateListSearch>

/** Writes members of the address. Undefined removes a member. */
export type Change = (changed: Partial<Record<keyof ListSearch, unknown>>, replace?: boolean) => void

/** The order by `sort` of the address. */
export function sortOf({ sort }: ListSearch): Sort | undefined {
  if (sort === undefined) return undefined
  return sort.startsWith('-') ? { field: sort.slice(1), direction: 'desc' } : { field: sort, direction: 'asc' }
}

export const sortText = ({ field, direction }: Sort): string => (direction === 'desc' ? `-${field}` : field)

/** The filter that the list applies. The changed filter of a segment replaces the segment. */
export function effectiveFilter({ filter, segment }: ListSearch): Filter | undefined {
  if (filter && Object.keys(filter).length > 0) return filter
  return segment === undefined ? undefined : ({ $segment: segment } as Filter)
}
