import type { Filter, Page } from '@kith/client'

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
