import type { WebhookDelivery } from '@kith/client'
import { queryOptions } from '@tanstack/react-query'
import { client, pagedQuery } from '../app/client.ts'

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
  pagedQuery([...webhooksKey, 'deliveries', id, state], at =>
    client.webhooks.deliveries(id, { ...at, ...(state && { state }) }).page(),
  )
