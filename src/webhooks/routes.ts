import { randomUUID } from 'node:crypto'
import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import type { Config } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { createResolve, parseRanges, type Resolve } from './addresses.ts'
import { listDeliveries } from './deliveries.ts'
import {
  type DeliveriesQuery,
  deliveriesQuery,
  deliveryPage,
  newWebhook,
  type ReplayBody,
  replayBody,
  replayResult,
  testResult,
  type WebhookBody,
  type WebhookPatch,
  webhook,
  webhookList,
  webhookPatch,
  webhookWithSecret,
} from './schema.ts'
import { sendTest } from './test-message.ts'
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  patchWebhook,
  readWebhooks,
  replay,
  requireScopes,
  rotateSecret,
  type WebhookCall,
} from './webhooks.ts'

const path = '/v1/webhooks'
const byId = { path: `${path}/{id}`, params: { id: 'number' } } as const
const reads = { method: 'GET', tag: 'Webhooks', scope: 'webhooks:read' } as const
const writes = { method: 'POST', tag: 'Webhooks', scope: 'webhooks:write' } as const
const idOf = ({ params }: Call<unknown>) => Number(params.id)

export function webhookRoutes({ webhookAllow }: Pick<Config, 'webhookAllow'>): Route[] {
  const allowed = parseRanges(webhookAllow)
  let resolver: Resolve | undefined
  // The resolver reads the DNS configuration, so it is created at the first use.
  const resolve: Resolve = host => {
    resolver ??= createResolve()
    return resolver(host)
  }
  const webhookCallOf = (call: Call<unknown>): WebhookCall => ({
    ...definitionCallOf(call),
    signal: call.signal,
    allowed,
    resolve,
  })
  return [
    definitionWrite<WebhookBody>({
      ...writes,
      path,
      operationId: 'createWebhook',
      summary: 'Create a webhook',
      description:
        'kith sends each matching change from now on to the URL, signed by Standard Webhooks 1.0. The response shows the secret, ' +
        'once. The token also needs the scopes that read what the events tell of, and `people:write` for `links`. kith stores no response with a secret, so an ' +
        'Idempotency-Key is ignored.',
      body: newWebhook,
      answer: webhookWithSecret,
      successes: { 201: 'Created.' },
      showsSecret: true,
      handle: async call => {
        requireScopes(call, call.body)
        const data = await createWebhook(webhookCallOf(call), call.body)
        return { status: 201, data, headers: { Location: `${path}/${data.id}` } }
      },
    }),
    route({
      ...reads,
      path,
      operationId: 'listWebhooks',
      summary: 'List the webhooks',
      answer: webhookList,
      handle: dataOf(async ({ context, signal }) => ({ items: await readWebhooks(context, null, signal) })),
    }),
    route({
      ...reads,
      ...byId,
      operationId: 'getWebhook',
      summary: 'Read a webhook',
      answer: webhook,
      handle: dataOf(call => findWebhook(call.context, idOf(call), call.signal)),
    }),
    definitionWrite<WebhookPatch>({
      ...writes,
      ...byId,
      method: 'PATCH',
      operationId: 'patchWebhook',
      summary: 'Change a webhook',
      description:
        '`active: false` pauses it, and `active: true` lets it go on from its position. The token also needs the scopes that read ' +
        'what the events tell of, before the change and after it, and `people:write` for `links`.',
      body: webhookPatch,
      answer: webhook,
      handle: async call => {
        const authorize = (changed: Parameters<typeof requireScopes>[1]) => requireScopes(call, changed)
        return { status: 200, data: await patchWebhook(webhookCallOf(call), idOf(call), call.body, authorize) }
      },
    }),
    definitionWrite({
      ...writes,
      ...byId,
      method: 'DELETE',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Requests under way may still arrive. Its deliveries are deleted soon.',
      answer: Type.Literal(true),
      handle: dataOf(call => deleteWebhook(webhookCallOf(call), idOf(call)).then(() => true)),
    }),
    ...actionRoutes(webhookCallOf),
  ]
}

function actionRoutes(webhookCallOf: (call: Call<unknown>) => WebhookCall): Route[] {
  return [
    definitionWrite({
      ...writes,
      ...byId,
      path: `${path}/{id}/rotate`,
      operationId: 'rotateWebhookSecret',
      summary: 'Make a new secret',
      description:
        'The new secret and the one before it both sign for 24 hours. The response shows the new one, once. An Idempotency-Key is ignored.',
      answer: webhookWithSecret,
      showsSecret: true,
      handle: dataOf(call => rotateSecret(webhookCallOf(call), idOf(call))),
    }),
    route({
      ...writes,
      ...byId,
      path: `${path}/{id}/test`,
      operationId: 'testWebhook',
      summary: 'Send a test event',
      description:
        'Sends an event of the type `webhook.test` once, also to an inactive webhook, and returns the outcome. The list of deliveries ' +
        'shows the last tests.',
      answer: testResult,
      // Each request sends an event, and an Idempotency-Key would keep a transaction open while the receiver responds.
      repeats: 'once',
      handle: async call => {
        const options = { id: randomUUID(), limitMs: call.limits.requestMs * 0.8 }
        return { status: 200, data: await sendTest(webhookCallOf(call), idOf(call), options) }
      },
    }),
    route<ReplayBody>({
      ...writes,
      ...byId,
      path: `${path}/{id}/replay`,
      operationId: 'replayWebhook',
      summary: 'Send changes again',
      description:
        'Sends the matching changes of a range again, in the background, with the `webhook-id` that they had.',
      body: replayBody,
      answer: replayResult,
      successes: { 202: 'Accepted.' },
      handle: async call => ({ status: 202, data: await replay(webhookCallOf(call), idOf(call), call.body) }),
    }),
    route<DeliveriesQuery>({
      ...reads,
      ...byId,
      path: `${path}/{id}/deliveries`,
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook',
      description:
        'Newest first, and on the first page the last test events. kith keeps a delivery for 30 days after it has ended.',
      query: deliveriesQuery,
      hasDefaults: true,
      answer: deliveryPage,
      handle: dataOf(call => listDeliveries(call.context, idOf(call), call.body, call.signal)),
    }),
  ]
}
