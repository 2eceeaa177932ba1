import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export const clientsQuery = infiniteQueryOptions({
  queryKey: ['clients'],
  queryFn: ({ pageParam, signal }) => client.access.clients.list({ signal, after: pageParam }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})

export const tokensQuery = infiniteQueryOptions({
  queryKey: ['tokens'],
  queryFn: ({ pageParam, signal }) => client.access.tokens.list({ signal, after: pageParam }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => client.sessions.list({ signal }).all(),
})

export const keysQuery = queryOptions({ queryKey: ['keys'], queryFn: ({ signal }) => client.access.keys({ signal }) })

export const rolesQuery = queryOptions({
  queryKey: ['roles'],
  queryFn: ({ signal }) => client.access.roles.list({ signal }),
})
