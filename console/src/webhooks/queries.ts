import type { WebhookDelivery } from '@kith/client'
import { client, pagedQuery, readQuery } from '../app/client.ts'

/** The key of all queries of webhooks, for a write that affects them. */
export const webhooksKey = ['webhooks']

export const webhooksQuery = readQuery([...webhooksKey, 'list'], options => client.webhooks.list(options).all())

export const webhookQuery = (id: number) =>
  readQuery([...webhooksKey, 'one', id], options => client.webhooks.get(id, options))

export const deliveriesQuery = (id: number, state: WebhookDelivery['state'] | '') =>
  pagedQuery([...webhooksKey, 'deliveries', id, state], at =>
    client.webhooks.deliveries(id, { ...at, ...(state && { state }) }).page(),
  )
