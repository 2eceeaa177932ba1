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
    // A read of the hold itself is refused for a person who has none, which a browser reports as a fault.
    queryFn: async ({ signal }) => (await client.holds.list({ person: id, signal }).page()).items[0] ?? null,
  })
