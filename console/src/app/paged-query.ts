import { infiniteQueryOptions } from '@tanstack/react-query'

/** Where a page of a list begins, undefined for the first one. */
type PageAt = { after: string | undefined; signal: AbortSignal }

/** The query of a list that is read page by page. */
export const pagedQuery = <Page extends { next: string | null }>(
  queryKey: readonly unknown[],
  read: (at: PageAt) => Promise<Page>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => read({ after: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
