import type { LookupKey } from '@kith/client'
import { queryOptions } from '@tanstack/react-query'
import { client, pagedQuery, readQuery } from '../app/client.ts'

/** The key of all queries of people who may be the same, for a write that affects them. */
export const duplicatesKey = ['entities', 'people', 'duplicates']

const groupsPerPage = 10

/** The groups of people who may be the same, page by page. */
export const groupsQuery = pagedQuery([...duplicatesKey, 'groups'], at =>
  client.people.duplicates({ size: groupsPerPage, ...at }).page(),
)

/** The people who were set aside, newest first. */
export const setAsidesQuery = pagedQuery([...duplicatesKey, 'set aside'], at =>
  client.people.setAsides({ size: groupsPerPage, ...at }).page(),
)

/** The people who may be the same as a person. */
export const duplicatesOfQuery = (id: string) =>
  readQuery(
    [...duplicatesKey, 'of', id],
    async ({ signal }) => (await client.people.duplicatesOf({ id }, { limit: 5, signal })).items,
  )

/** The people who have an email or phone. A value that is still being typed may be invalid, and finds no person. */
export const knownQuery = (key: LookupKey | undefined) =>
  queryOptions({
    queryKey: [...duplicatesKey, 'known', key],
    queryFn: async ({ signal }) => (key ? (await client.people.lookup(key, { signal })).items : []),
    enabled: key !== undefined,
    retry: false,
  })
