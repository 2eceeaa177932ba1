import type { Filter } from '@kith/client'
import { filterOfAddress } from '../app/search-params.ts'

/** The address of a list holds the text that was searched for, the filter, and the sort. */
export type RecordsSearch = { text?: string; filter?: Filter; sort?: string; direction?: 'asc' | 'desc' }

export function validateRecordsSearch(search: Record<string, unknown>): RecordsSearch {
  const { text, sort, direction } = search
  const filter = filterOfAddress(search.filter)
  return {
    ...(typeof text === 'string' && text !== '' && { text }),
    ...(filter && { filter }),
    ...(typeof sort === 'string' && { sort }),
    ...(direction === 'desc' && { direction }),
  }
}

/**
 * The address of a record names it by its internal identifier, or with `by` by its external one. With `version`, the page shows the
 * record as it was.
 */
export type RecordSearch = { by?: 'external_id'; version?: number }

export function validateRecordSearch({ by, version }: Record<string, unknown>): RecordSearch {
  return {
    ...(by === 'external_id' && { by }),
    ...(Number.isInteger(Number(version)) && Number(version) > 0 && { version: Number(version) }),
  }
}
