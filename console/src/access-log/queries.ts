import type { AccessLogOptions } from '@kith/client'
import { infiniteQueryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import type { AccessLogSearch } from './search.ts'

/** The filter of the service. An identifier that none can be is left to it to refuse. */
export function filterOf({ from, to, ...filter }: AccessLogSearch): AccessLogOptions {
  return {
    ...filter,
    ...(from && { from: new Date(`${from}T00:00:00`).toISOString() }),
    ...(to && { to: new Date(`${to}T23:59:59.999`).toISOString() }),
  }
}

export const accessLogQuery = (search: AccessLogSearch, size = 50) =>
  infiniteQueryOptions({
    queryKey: ['access-log', search, size],
    queryFn: ({ pageParam, signal }) =>
      client.access.log({ ...filterOf(search), size, signal, after: pageParam }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
