import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: ({ signal }) => client.schema.settings({ signal }),
})

/** The keys that values of an owner have without a declaration. */
export const observedQuery = (owner: string) =>
  queryOptions({
    queryKey: ['schema', 'observed', owner],
    queryFn: ({ signal }) => client.schema.observed(owner, { signal }),
  })

/** The texts of a purpose, oldest first. */
export const consentTextsQuery = (id: number) =>
  infiniteQueryOptions({
    queryKey: ['consent-texts', id],
    queryFn: ({ pageParam, signal }) =>
      client.schema.consentTypes.texts(id, { after: pageParam, size: 100, signal }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
