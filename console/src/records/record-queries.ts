import type { Filter, Page, StackRecord } from '@kith/client'
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { searchWithin } from '../filters/search-within.ts'
import type { RecordsSearch } from './search.ts'

/** A record in a list: the members that its columns need. */
export type ListedRecord = Pick<StackRecord, 'record_id' | 'external_id' | 'state' | 'created_at' | 'updated_at'> & {
  attribute_values: Record<string, unknown>
}

const pageSize = 100
const fields = ['record_id', 'external_id', 'state', 'created_at', 'updated_at'] as const

/** The values to read: those of the declared attributes, or all if there are none. A list can name at most 100 fields. */
const valueFields = (keys: readonly string[]) =>
  keys.length === 0
    ? (['attribute_values'] as const)
    : keys.slice(0, 100 - fields.length).map(key => `attribute_values.${key}` as const)

/** The exact number of records that match a filter. */
export const countQuery = (stackKey: string, filter: Filter | undefined) =>
  queryOptions({
    queryKey: ['records', stackKey, 'count', filter],
    queryFn: ({ signal }) => client.stack(stackKey).count(filter, { signal }),
    staleTime: 30_000,
  })

/** The pages of a list: those that a search finds, or that match the filter, in the order of the address. */
export const listQuery = (
  stackKey: string,
  { text, filter, sort, direction = 'asc' }: RecordsSearch,
  keys: readonly string[],
) =>
  infiniteQueryOptions({
    queryKey: ['records', stackKey, 'list', { text, filter, sort, direction, keys }],
    queryFn: async ({ pageParam, signal }): Promise<Page<ListedRecord>> => {
      const stack = client.stack(stackKey)
      const page = { size: pageSize, signal, after: pageParam }
      if (text) return searchWithin(stack, { text, filter, idField: 'record_id' }, page)
      const options = {
        ...page,
        fields: [...fields, ...valueFields(keys)],
        ...(sort && { sort: { field: sort as 'external_id', direction } }),
      }
      const listing = filter ? stack.filter(filter, options) : stack.list(options)
      return (await listing.page()) as Page<ListedRecord>
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  })

/** A record by its internal identifier, as it is or as it was in a version. */
export const recordQuery = (stackKey: string, recordId: string, version?: number) =>
  queryOptions({
    queryKey: ['records', stackKey, 'one', recordId, version ?? null],
    queryFn: ({ signal }) =>
      client.stack(stackKey).get({ id: recordId }, { signal, ...(version !== undefined && { version }) }),
  })
