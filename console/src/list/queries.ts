import type { Filter, Page } from '@kith/client'
import { type InfiniteData, keepPreviousData, queryOptions, type UseInfiniteQueryResult } from '@tanstack/react-query'
import { client, pagedQuery, untilIndexed } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { queryClient } from '../app/query-client.ts'
import { type Entity, entitiesOf, idFieldOf, idOf, type Values } from '../entity/entities.ts'
import { isSearchable, noDefinitions, schemaQuery } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import type { Sort } from '../ui/virtual-table.tsx'
import { effectiveFilter, type ListSearch, sortOf } from './search.ts'

/** A person or record of a list. It has the members of the chosen columns, and those that its link needs. */
export type Row = Pick<Entity, 'external_id'> & Partial<Entity> & Values & { id: string }

/** The rows of a list, their order, and their members. */
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

/** The list of an address, with the members that its columns show. */
export function listOf(owner: string, search: ListSearch, columns: readonly string[]): ListQuery {
  const text = search.text?.trim() ?? ''
  const filter = effectiveFilter(search)
  // A search has its own order and returns whole entities.
  if (text !== '') return { owner, text, filter, sort: undefined, fields: [] }
  const fields = columns.includes('mobile_number') ? ['mobile_prefix', 'mobile_e164', ...columns] : [...columns]
  return { owner, text, filter, sort: sortOf(search), fields }
}

/** The members that every row needs, with any columns. */
const rowFields = (owner: string) =>
  owner === 'people'
    ? ['id', 'external_id', 'first_name', 'last_name', 'email', 'state']
    : ['record_id', 'external_id', 'state']

/** The API accepts at most this many fields. */
const maxFields = 100
/** The first page is small, so that it loads early. Later pages are read ahead of the scrolling. */
const [firstPageSize, pageSize, searchPageSize] = [50, 200, 50]

type ReadOptions = { after?: string | undefined; size: number; signal?: AbortSignal | undefined }

/** Reads a page of a list. */
export async function readList(query: ListQuery, { after, size, signal }: ReadOptions): Promise<ListPage> {
  const { owner, text, filter, sort, fields } = query
  if (text !== '') return search(query, { after, size, signal })
  const entities = entitiesOf(owner)
  const options = {
    size,
    // The names of records, and those of the targets in the columns of relationships.
    labels: owner !== 'people' || !fields || fields.some(name => name.startsWith(attributePrefix)),
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

/** A search within a filter reads at most this many pages of results before it returns one without a match. */
const maxPagesSearched = 5

/** Reads a page of the results of a search. A filter is applied to each page of results, which keeps their order. */
async function search({ owner, text, filter }: ListQuery, { after, size, signal }: ReadOptions): Promise<ListPage> {
  const options = { size: Math.min(size, 100), ...(signal && { signal }) }
  for (let [page, pages] = [after, 1]; ; pages++) {
    const { items: found, next } = await searchPage(owner, text, { ...options, labels: true, after: page })
    const items = filter && found.length > 0 ? await matchesIn(found) : found
    if (items.length > 0 || next === null || pages === maxPagesSearched) return { items, next }
    page = next
  }

  async function matchesIn(found: Row[]): Promise<Row[]> {
    const among = { $and: [{ [idFieldOf(owner)]: { $in: found.map(({ id }) => id) } }, filter] } as Filter
    const { items } = await entitiesOf(owner).filter(among, options).page()
    const ids = new Set(items.map(idOf))
    return found.filter(({ id }) => ids.has(id))
  }
}

type SearchOptions = { size: number; labels: true; after: string | undefined; signal?: AbortSignal }

/** Without a searchable attribute, only their identifiers find records, in a search that names their stack. */
async function searchPage(owner: string, text: string, options: SearchOptions): Promise<ListPage> {
  if (isSearchable(owner, queryClient.getQueryData(schemaQuery.queryKey) ?? noDefinitions))
    return pageOf((await entitiesOf(owner).search(text, options).page()) as Page<Entity>)
  const { items, next } = await client.search(text, { ...options, owners: [owner] }).page()
  return pageOf({ items: items.map(({ entity }) => entity as unknown as Entity), next })
}

const pageOf = ({ items, next }: Pick<Page<Entity>, 'items' | 'next'>): ListPage => ({
  items: items.map(item => ({ ...item, id: idOf(item) })),
  next,
})

/** The pages of a list. They are kept while the console shows one entity, so that the way back is immediate. */
export const listQuery = (query: ListQuery) => ({
  ...pagedQuery(['entities', query.owner, 'list', query], ({ after, signal }) => {
    const size = query.text !== '' ? searchPageSize : after === undefined ? firstPageSize : pageSize
    return readList(query, { after, size, signal })
  }),
  placeholderData: keepPreviousData,
  staleTime: 30_000,
  refetchInterval: untilIndexed,
})

/** The exact number of people or records that a filter matches, with warnings of keys that it probably misspells. */
export const countQuery = (owner: string, filter?: Filter) =>
  queryOptions({
    queryKey: ['entities', owner, 'count', filter ?? null],
    queryFn: ({ signal }) => entitiesOf(owner).count(filter, { signal }),
    staleTime: 30_000,
  })
