import type { LookupKey } from '@kith/client'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

/** All queries of people who may be one, for a write that changes what they show. */
export const duplicatesKey = ['entities', 'people', 'duplicates']

const groupsPerPage = 10

/** The groups of people who may be one, page by page. */
export const groupsQuery = infiniteQueryOptions({
  queryKey: [...duplicatesKey, 'groups'],
  queryFn: ({ pageParam, signal }) =>
    client.people.duplicates({ size: groupsPerPage, signal, ...(pageParam && { after: pageParam }) }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})

/** The people who were set aside, newest first. */
export const setAsidesQuery = infiniteQueryOptions({
  queryKey: [...duplicatesKey, 'set aside'],
  queryFn: ({ pageParam, signal }) =>
    client.people.setAsides({ size: groupsPerPage, signal, ...(pageParam && { after: pageParam }) }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})

/** The people who may be the same as one. */
export const duplicatesOfQuery = (id: string) =>
  queryOptions({
    queryKey: [...duplicatesKey, 'of', id],
    queryFn: async ({ signal }) => (await client.people.duplicatesOf({ id }, { limit: 5, signal })).items,
  })

/** The people who have an email or phone. What is none yet, because it is still being typed, finds nobody. */
export const knownQuery = (key: LookupKey | undefined) =>
  queryOptions({
    queryKey: [...duplicatesKey, 'known', key],
    queryFn: async ({ signal }) => (key ? (await client.people.lookup(key, { signal })).items : []),
    enabled: key !== undefined,
    retry: false,
  })
