import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query'
import { client, readQuery } from '../app/client.ts'
import type { DeliverabilitySearch } from './search.ts'

/** The key of all queries of suppressed addresses, for a write that affects them. */
export const suppressionsKey = ['suppressions']

/** The suppressed addresses, newest first. */
export const suppressionsQuery = ({ text = '', reason, channel }: DeliverabilitySearch) =>
  infiniteQueryOptions({
    queryKey: [...suppressionsKey, 'list', text, reason, channel],
    queryFn: ({ pageParam, signal }) => {
      const search = text.trim()
      const asked = { ...(search && { search }), ...(reason && { reason }), ...(channel && { channel }) }
      return client.deliverability.suppressed({ ...asked, ...(pageParam && { cursor: pageParam }), signal })
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
  })

/** The events and suppressions of the addresses that a version of a person has. */
export const personAddressesQuery = (id: string, version: number) =>
  readQuery(
    [...suppressionsKey, 'person', id, version],
    async options => (await client.deliverability.of({ id }, options)).items,
  )

export const sourcesQuery = readQuery(
  ['deliverability', 'sources'],
  async options => (await client.deliverability.sources(options)).items,
)
