import type { Filter } from '@kith/client'

/** The filter of the people who are in none of these segments. */
export const unusedFilter = (segments: readonly string[]): Filter =>
  ({ $and: segments.map(key => ({ $not: { $segment: key } })) }) as Filter
