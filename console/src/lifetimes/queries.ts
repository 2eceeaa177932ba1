import { queryOptions } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'

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
  queryOptions({
    queryKey: [...lifetimesKey, 'preview', id],
    queryFn: ({ signal }) => client.retentionRules.preview(id, { signal }),
  })

export const runsQuery = (id: number) =>
  queryOptions({
    queryKey: [...lifetimesKey, 'runs', id],
    queryFn: ({ signal }) => client.retentionRules.runs(id, { signal }).all(),
  })

export const holdsQuery = pagedQuery([...lifetimesKey, 'holds'], at => client.holds.list(at).page())

/** The hold of a person, or null. */
export const holdQuery = (id: string) =>
  queryOptions({
    queryKey: [...lifetimesKey, 'hold', id],
    queryFn: async ({ signal }) => (await client.holds.list({ person: id, signal }).page()).items[0] ?? null,
  })
