import type { Filter, Page } from '@kith/client'
import {
  type InfiniteData,
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  type UseInfiniteQueryResult,
} from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { queryClient } from '../app/query-client.ts'
import { type Entity, entitiesOf, idFieldOf, idOf, type Values } from '../entity/entities.ts'
import { isSearchable, noDefinitions, schemaQuery } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import type { Sort } from '../ui/virtual-table.tsx'
import { effectiveFilter, type ListSearch, sortOf } from './search.ts'

/** A person or record of a list. It has the members of the chosen columns, and those that its link needs. */
export type Row = Pick<Entity, 'external_id'> & Partial<Entity> & Values & { id: string }

/** What a list shows, in which order, with which members. */
export type ListQuery = {
  /** `people`, or the key of a stack. */
  owner: string
  text: string
  filter: Filter | undefined
  sort: Sort | undefined
  /** Undefined means whole entities. */
  fields: readonly string[] | undefined
}

export type ListPage = { items: Row[]; next: string | null }
export type ListResult = UseInfiniteQueryResult<InfiniteData<ListPage>>

/** The list that an address stands for, with the members that its columns show. */
export function listOf(owner: string, search: ListSearch, columns: readonly string[]): ListQuery {
  const text = search.text?.trim() ?? ''
  const filter = effectiveFilter(search)
  // A search has an order of its own and returns whole entities.
  if (text !== '') return { owner, text, filter, sort: undefined, fields: [] }
  const fields = columns.includes('mobile_number') ? ['mobile_prefix', 'mobile_e164', ...columns] : [...columns]
  return { owner, text, filter, sort: sortOf(search), fields }
}

/** The members that every row needs, whatever its columns are. */
const rowFields = (owner: string) =>
  owner === 'people'
    ? ['id', 'external_id', 'first_name', 'last_name', 'email', 'state']
    : ['record_id', 'external_id', 'state']

/** The API accepts so many fields. */
const maxFields = 100
/** The first page is small, so that it comes early. The later ones are read ahead of the scrolling. */
const [firstPageSize, pageSize, searchPageSize] = [50, 200, 50]

type ReadOptions = { after?: string | undefined; size: number; signal?: AbortSignal | undefined }

/** Reads a page of a list. */
export async function readList(query: ListQuery, { after, size, signal }: ReadOptions): Promise<ListPage> {
  const { owner, text, filter, sort, fields } = query
  const entities = entitiesOf(owner)
  if (text !== '') {
    const within = { text, filter, idField: idFieldOf(owner) }
    const searched = isSearchable(owner, queryClient.getQueryData(schemaQuery.queryKey) ?? noDefinitions)
      ? entities
      : foundAmongAll(owner)
    const page = { size, signal, after }
    return pageOf((await searchWithin(searched as never, within, page)) as unknown as Page<Entity>)
  }
  // The names of records, and those of the targets in the columns of relationships.
  const labels = owner !== 'people' || !fields || fields.some(name => name.startsWith(attributePrefix))
  const options = {
    size,
    labels,
    ...(fields && {
      fields: [...new Set([...rowFields(owner), ...fields])]
        .filter(name => mayUse('read', owner, name))
        .slice(0, maxFields) as 'external_id'[],
    }),
    ...(sort && { sort: sort as { field: 'external_id'; direction: Sort['direction'] } }),
    after,
    ...(signal && { signal }),
  }
  const page = await (filter ? entities.filter(filter, options) : entities.list(options)).page()
  return pageOf(page as Page<Entity>)
}

/** Without a searchable attribute, records are found by their identifiers only, in a search that names their stack. */
const foundAmongAll = (owner: string) => ({
  filter: entitiesOf(owner).filter.bind(entitiesOf(owner)),
  search: (text: string, options: object) => ({
    page: async () => {
      const { items, ...page } = await client.search(text, { ...options, owners: [owner] }).page()
      return { ...page, items: items.map(({ entity }) => entity) }
    },
  }),
})

const pageOf = ({ items, next }: Page<Entity>): ListPage => ({
  items: items.map(item => ({ ...item, id: idOf(item) })),
  next,
})

/** The pages of a list, kept while somebody looks at one entity, so that the list is there when they come back. */
export const listQuery = (query: ListQuery) =>
  infiniteQueryOptions({
    queryKey: ['entities', query.owner, 'list', query],
    queryFn: ({ pageParam, signal }) => {
      const size = query.text !== '' ? searchPageSize : pageParam === undefined ? firstPageSize : pageSize
      return readList(query, { after: pageParam, size, signal })
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })

/** The exact number of people or records that a filter matches. */
export const countQuery = (owner: string, filter?: Filter) =>
  queryOptions({
    queryKey: ['entities', owner, 'count', filter ?? null],
    queryFn: async ({ signal }) => (await entitiesOf(owner).count(filter, { signal })).count,
    staleTime: 30_000,
  })

/** A search within a filter reads so many pages of results before it returns one without a match. */
const maxPagesSearched = 5

/** People or the records of a stack: what a search and a filter need of their client. */
type Searched<E> = {
  search(
    text: string,
    options: { size: number; labels: true; after?: string | undefined; signal?: AbortSignal },
  ): { page(): Promise<Page<E>> }
  filter(filter: Filter, options: { size: number; signal?: AbortSignal }): { page(): Promise<Page<E>> }
}

type Within<K> = { text: string; filter: Filter | undefined; idField: K }
type PageOptions = { after?: string | undefined; size: number; signal?: AbortSignal | undefined }

/** Reads a page of the results of a search. A filter is applied to each page of results, which keeps their order. */
export async function searchWithin<K extends string, E extends Record<K, string>>(
  entities: Searched<E>,
  { text, filter, idField }: Within<K>,
  { after, size, signal }: PageOptions,
): Promise<Page<E>> {
  const options = { size: Math.min(size, 100), ...(signal && { signal }) }
  let next = after
  for (let pages = 1; ; pages++) {
    const page = await entities.search(text, { ...options, labels: true, after: next }).page()
    const items = filter ? await keepMatching(page.items) : page.items
    next = page.next ?? undefined
    if (items.length > 0 || next === undefined || pages === maxPagesSearched) return { ...page, items }
  }

  async function keepMatching(found: E[]): Promise<E[]> {
    if (found.length === 0) return []
    const among = { $and: [{ [idField]: { $in: found.map(each => each[idField]) } }, filter] } as Filter
    const { items } = await entities.filter(among, options).page()
    const ids = new Set(items.map(each => each[idField]))
    return found.filter(each => ids.has(each[idField]))
  }
}
