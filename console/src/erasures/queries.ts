import { infiniteQueryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

export const erasuresQuery = infiniteQueryOptions({
  queryKey: ['erasures'],
  queryFn: ({ pageParam, signal }) => client.erasures.list({ after: pageParam, signal }).page(),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: ({ next }) => next ?? undefined,
})
