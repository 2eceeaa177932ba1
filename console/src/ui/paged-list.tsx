import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { Loading, Problem } from './page.tsx'

type PagedListProps<Item> = {
  query: UseInfiniteQueryResult<InfiniteData<{ items: readonly Item[] }>>
  /** Shown instead of a list without any item on all pages. */
  none: ReactNode
  /** The label of the button for the next page. */
  more: string
  children: (items: Item[]) => ReactNode
}

/** A paginated list, or the element for its loading, its error or its lack of items. */
export function PagedList<Item>({ query, none, more, children }: PagedListProps<Item>) {
  const items = query.data?.pages.flatMap(page => page.items) ?? []
  return (
    <>
      {query.isPending && <Loading />}
      {query.error && <Problem error={query.error} onRetry={() => query.refetch()} />}
      {query.data && items.length === 0 && !query.hasNextPage && none}
      {items.length > 0 && children(items)}
      <MoreButton query={query}>{more}</MoreButton>
    </>
  )
}

type MoreButtonProps = {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage(): unknown }
  /** The name of the list, for screen readers. */
  name?: string
  children: string
}

/** Reads the next page of a list, if it exists. */
export function MoreButton({
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  name,
  children,
}: MoreButtonProps) {
  if (!hasNextPage) return null
  return (
    <div>
      <Button
        onPress={() => fetchNextPage()}
        isPending={isFetchingNextPage}
        {...(name && { 'aria-label': `${children}: ${name}` })}
      >
        {children}
      </Button>
    </div>
  )
}
