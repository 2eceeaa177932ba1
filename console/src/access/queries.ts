import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export const clientsQuery = infiniteQueryOptions({
  queryKey: ['clients'],
  queryFn: ({ pageParam, signal }) => client.access.clients.list({ signal, ...(pageParam && { before: pageParam }) }),
  initialPageParam: '',
  getNextPageParam: page => (page.has_more ? page.items.at(-1)!.client_id : undefined),
})

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => client.sessions.list({ signal }),
})

export const keysQuery = queryOptions({ queryKey: ['keys'], queryFn: ({ signal }) => client.access.keys({ signal }) })
