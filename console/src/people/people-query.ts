import type { Filter as ClientFilter, Page, Person } from '@kith/client'
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import type { Filter } from '../filters/filter-tree.ts'
import { searchWithin } from '../filters/search-within.ts'
import type { Sort } from '../ui/virtual-table.tsx'
import { effectiveFilter, type PeopleSearch, sortOf } from './search.ts'

/** A person of the list. It has the members of the chosen columns, and those that its link needs. */
export type PersonRow = Pick<Person, 'id' | 'external_id'> & Partial<Person>

/** Which people a list shows, in which order, with which members. */
export type PeopleQuery = {
  text: string
  filter: Filter | undefined
  sort: Sort | undefined
  /** Undefined means whole people. */
  fields: readonly string[] | undefined
}

export type PeoplePage = { items: PersonRow[]; next: string | null }

/** The list that an address stands for, with the members that its columns show. */
export function listOf(search: PeopleSearch, columns: readonly string[]): PeopleQuery {
  const text = search.text?.trim() ?? ''
  const filter = effectiveFilter(search)
  // A search has an order of its own and returns whole people.
  if (text !== '') return { text, filter, sort: undefined, fields: [] }
  const fields = columns.includes('mobile_number') ? ['mobile_prefix', ...columns] : [...columns]
  return { text, filter, sort: sortOf(search), fields }
}

/** The members that every row needs, whatever its columns are. */
const rowFields = ['id', 'external_id', 'first_name', 'last_name', 'email', 'state']
/** The API accepts so many fields. */
const maxFields = 100
/** The first page is small, so that it comes early. The later ones are read ahead of the scrolling. */
const [firstPageSize, pageSize, searchPageSize] = [50, 200, 50]

type ReadOptions = { after?: string | undefined; size: number; signal?: AbortSignal | undefined }

/** Reads a page of the people of a list. */
export async function readPeople(query: PeopleQuery, options: ReadOptions): Promise<PeoplePage> {
  const { text, filter } = query
  if (text === '') return readFiltered(query, options)
  const within = { text, filter: filter as ClientFilter | undefined, idField: 'id' } as const
  return searchWithin(client.people, within, options)
}

async function readFiltered(
  { filter, sort, fields }: PeopleQuery,
  { after, size, signal }: ReadOptions,
): Promise<PeoplePage> {
  const options = {
    size,
    after,
    ...(fields && { fields: [...new Set([...rowFields, ...fields])].slice(0, maxFields) as 'id'[] }),
    ...(sort && { sort: sort as { field: 'last_name'; direction: 'asc' } }),
    ...(signal && { signal }),
  }
  const listing = filter ? client.people.filter(filter as ClientFilter, options) : client.people.list(options)
  return (await listing.page()) as Page<PersonRow>
}

/** The pages of a list, kept while the person looks at somebody, so that the list is there when they come back. */
export const peopleQuery = (query: PeopleQuery) =>
  infiniteQueryOptions({
    queryKey: ['people', 'list', query],
    queryFn: ({ pageParam, signal }) => {
      const size = query.text !== '' ? searchPageSize : pageParam === undefined ? firstPageSize : pageSize
      return readPeople(query, { after: pageParam, size, signal })
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })

/** The exact number of people that a filter matches. */
export const countQuery = (filter: Filter | undefined) =>
  queryOptions({
    queryKey: ['people', 'count', filter ?? null],
    queryFn: async ({ signal }) => (await client.people.count(filter as ClientFilter | undefined, { signal })).count,
    staleTime: 30_000,
  })
