import { isKithError } from '@kith/client'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

/** All queries of rules and holds, for a write that changes what they show. */
export const lifetimesKey = ['lifetimes']

export const rulesQuery = queryOptions({
  queryKey: [...lifetimesKey, 'rules'],
  queryFn: ({ signal }) => client.retentionRules.list({ signal }).all(),
})

export const ruleQuery = (id: number) =>
  queryOptions({
    queryKey: [...lifetimesKey, 'rule', id],
    queryFn: ({ signal }) => client.retentionRules.get(id, { signal }),
  })

export const previewQuery = (id: number) =>
  infiniteQueryOptions({
    queryKey: [...lifetimesKey, 'preview', id],
    queryFn: ({ pageParam, signal }) => client.retentionRules.preview(id, { after: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ items, has_more }) => (has_more ? items.at(-1)?.id : undefined),
  })

export const runsQuery = (id: number) =>
  infiniteQueryOptions({
    queryKey: [...lifetimesKey, 'runs', id],
    queryFn: ({ pageParam, signal }) => client.retentionRules.runs(id, { after: pageParam, signal }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })

export const holdsQuery = infiniteQueryOptions({
  queryKey: [...lifetimesKey, 'holds'],
  queryFn: ({ pageParam, signal }) => client.holds.list({ after: pageParam, signal }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})

/** The hold of a person, or null. */
export const holdQuery = (id: string) =>
  queryOptions({
    queryKey: [...lifetimesKey, 'hold', id],
    queryFn: ({ signal }) =>
      Promise.resolve(client.holds.get({ id }, { signal })).catch((error: unknown) => {
        if (isKithError(error) && error.status === 404) return null
        throw error
      }),
  })
