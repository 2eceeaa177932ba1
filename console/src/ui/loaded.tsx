import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Loading, Page, Problem } from './page.tsx'

type LoadedProps<Data> = {
  query: UseQueryResult<Data>
  /** Shown instead of an empty list. */
  none?: ReactNode
  children: (data: Data) => ReactNode
}

/** The data of a query, or the element for its loading or its error. */
export function Loaded<Data>({ query: { data, error, isPending, refetch }, none, children }: LoadedProps<Data>) {
  const isEmpty = none !== undefined && Array.isArray(data) && data.length === 0
  return (
    <>
      {isPending && <Loading />}
      {error && <Problem error={error} onRetry={() => refetch()} />}
      {isEmpty && none}
      {data !== undefined && !isEmpty && children(data)}
    </>
  )
}

type UnreadPageProps = { title: string; query: Pick<UseQueryResult, 'error' | 'refetch'> }

/** A page whose query has no data yet. It shows the title only with an error, because the data bring another title. */
export function UnreadPage({ title, query: { error, refetch } }: UnreadPageProps) {
  if (!error) return <Loading />
  return (
    <Page title={title}>
      <Problem error={error} onRetry={() => refetch()} />
    </Page>
  )
}
