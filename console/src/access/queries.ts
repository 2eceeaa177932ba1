import { queryOptions } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'

export const clientsQuery = pagedQuery(['clients'], at => client.access.clients.list(at).page())

export const tokensQuery = pagedQuery(['tokens'], at => client.access.tokens.list(at).page())

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => client.sessions.list({ signal }).all(),
})

export const accountsQuery = queryOptions({
  queryKey: ['accounts'],
  queryFn: ({ signal }) => client.access.accounts.list({ signal }).all(),
})

export const keysQuery = queryOptions({ queryKey: ['keys'], queryFn: ({ signal }) => client.access.keys({ signal }) })

export const rolesQuery = queryOptions({
  queryKey: ['roles'],
  queryFn: ({ signal }) => client.access.roles.list({ signal }),
})
