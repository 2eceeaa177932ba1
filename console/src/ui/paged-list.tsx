import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { MoreButton } from './more-button.tsx'
import { Problem } from './notice.tsx'
import { Loading } from './page.tsx'

type PagedListProps<Item> = {
  query: UseInfiniteQueryResult<InfiniteData<{ items: readonly Item[] }>>
  /** What the page shows instead of an empty list. */
  none: ReactNode
  /** The label of the button for the next page. */
  more: string
  children: (items: Item[]) => ReactNode
}

/** A list that is read page by page, with what is shown while it is read, after an error, and without items. */
export function PagedList<Item>({ query, none, more, children }: PagedListProps<Item>) {
  const items = query.data?.pages.flatMap(page => page.items) ?? []
  return (
    <>
      {query.isPending && <Loading />}
      {query.error && <Problem error={query.error} onRetry={() => query.refetch()} />}
      {query.data && items.length === 0 && none}
      {items.length > 0 && children(items)}
      <MoreButton query={query}>{more}</MoreButton>
    </>
  )
}
