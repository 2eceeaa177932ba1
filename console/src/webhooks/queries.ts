import type { WebhookDelivery } from '@kith/client'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from '../app/client.ts'

/** All queries of webhooks, for a write that changes what they show. */
export const webhooksKey = ['webhooks']

export const webhooksQuery = queryOptions({
  queryKey: [...webhooksKey, 'list'],
  queryFn: ({ signal }) => client.webhooks.list({ signal }).all(),
})

export const webhookQuery = (id: number) =>
  queryOptions({
    queryKey: [...webhooksKey, 'one', id],
    queryFn: ({ signal }) => client.webhooks.get(id, { signal }),
  })

export const deliveriesQuery = (id: number, state: WebhookDelivery['state'] | '') =>
  infiniteQueryOptions({
    queryKey: [...webhooksKey, 'deliveries', id, state],
    queryFn: ({ pageParam, signal }) =>
      client.webhooks.deliveries(id, { signal, ...(state && { state }), after: pageParam }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  })
