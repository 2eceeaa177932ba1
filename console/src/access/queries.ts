import { client, pagedQuery, readQuery } from '../app/client.ts'

export const clientsQuery = pagedQuery(['clients'], at => client.access.clients.list(at).page())

export const tokensQuery = pagedQuery(['tokens'], at => client.access.tokens.list(at).page())

export const sessionsQuery = readQuery(['sessions'], options => client.sessions.list(options).all())

export const accountsQuery = readQuery(['accounts'], options => client.access.accounts.list(options).all())

export const keysQuery = readQuery(['keys'], options => client.access.keys(options))

export const rolesQuery = readQuery(['roles'], options => client.access.roles.list(options))
