import { randomUUID } from 'node:crypto'
import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import type { Config } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { type Route, route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { createResolve, parseRanges, type Resolve } from './addresses.ts'
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
  listDeliveries,
  listWebhooks,
  patchWebhook,
  replay,
  requireScopes,
  rotateSecret,
  type WebhookCall,
} from './webhooks.ts'

const path = '/v1/webhooks'
const tag = 'Webhooks'
const params = { id: 'number' } as const
const byId = { tag, path: `${path}/{id}`, params }
const idOf = ({ params }: Call) => Number(params.id)

/** The route table of webhooks. */
export function webhookRoutes({ webhookAllow }: Pick<Config, 'webhookAllow'>): Route[] {
  const allowed = parseRanges(webhookAllow)
  let resolver: Resolve | undefined
  // The resolver reads the configuration of DNS, so it is not made before it is needed.
  const resolve: Resolve = host => {
    resolver ??= createResolve()
    return resolver(host)
  }
  const webhookCallOf = (call: Call): WebhookCall => ({
    ...definitionCallOf(call),
    signal: call.signal,
    allowed,
    resolve,
  })
  return [
    definitionWrite<WebhookBody>({
      method: 'POST',
      tag,
      path,
      scope: 'webhooks:write',
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
      method: 'GET',
      tag,
      path,
      scope: 'webhooks:read',
      operationId: 'listWebhooks',
      summary: 'List the webhooks',
      answer: webhookList,
      handle: async ({ context, signal }) => ({
        status: 200,
        data: { items: await listWebhooks(context, signal) },
      }),
    }),
    route({
      method: 'GET',
      ...byId,
      scope: 'webhooks:read',
      operationId: 'getWebhook',
      summary: 'Read a webhook',
      answer: webhook,
      handle: async call => ({
        status: 200,
        data: await findWebhook(call.context, idOf(call), call.signal),
      }),
    }),
    definitionWrite<WebhookPatch>({
      method: 'PATCH',
      ...byId,
      scope: 'webhooks:write',
      operationId: 'patchWebhook',
      summary: 'Change a webhook',
      description:
        '`active: false` pauses it, and `active: true` lets it go on from its position. The token also needs the scopes that read ' +
        'what the events tell of, and `people:write` for `links`.',
      body: webhookPatch,
      answer: webhook,
      handle: async call => ({
        status: 200,
        data: await patchWebhook(webhookCallOf(call as Call), idOf(call as Call), call.body, changed =>
          requireScopes(call, changed),
        ),
      }),
    }),
    definitionWrite({
      method: 'DELETE',
      ...byId,
      scope: 'webhooks:write',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Requests under way may still arrive. Its deliveries are deleted soon.',
      answer: Type.Literal(true),
      handle: async call => {
        await deleteWebhook(webhookCallOf(call), idOf(call))
        return { status: 200, data: true }
      },
    }),
    ...actionRoutes(webhookAllow, webhookCallOf),
  ]
}

function actionRoutes(webhookAllow: readonly string[], webhookCallOf: (call: Call) => WebhookCall): Route[] {
  return [
    definitionWrite({
      method: 'POST',
      tag,
      path: `${path}/{id}/rotate`,
      params,
      scope: 'webhooks:write',
      operationId: 'rotateWebhookSecret',
      summary: 'Make a new secret',
      description:
        'The new secret and the one before it both sign for 24 hours. The response shows the new one, once. An Idempotency-Key is ignored.',
      answer: webhookWithSecret,
      showsSecret: true,
      handle: async call => ({ status: 200, data: await rotateSecret(webhookCallOf(call), idOf(call)) }),
    }),
    route({
      method: 'POST',
      tag,
      path: `${path}/{id}/test`,
      params,
      scope: 'webhooks:write',
      operationId: 'testWebhook',
      summary: 'Send a test event',
      description:
        'Sends an event of the type `webhook.test` once, also to an inactive webhook, and returns the outcome. The list of deliveries ' +
        'shows the last tests.',
      answer: testResult,
      // Each request sends an event, and a key would hold a transaction open while the receiver responds.
      repeats: 'once',
      handle: async call => ({
        status: 200,
        data: await sendTest(webhookCallOf(call), idOf(call), {
          id: randomUUID(),
          limitMs: call.limits.requestMs * 0.8,
          ranges: webhookAllow,
        }),
      }),
    }),
    route<ReplayBody>({
      method: 'POST',
      tag,
      path: `${path}/{id}/replay`,
      params,
      scope: 'webhooks:write',
      operationId: 'replayWebhook',
      summary: 'Send changes again',
      description:
        'Sends the matching changes of a range again, in the background, with the `webhook-id` that they had.',
      body: replayBody,
      answer: replayResult,
      successes: { 202: 'Accepted.' },
      handle: async call => ({
        status: 202,
        data: await replay(webhookCallOf(call as Call), idOf(call as Call), call.body),
      }),
    }),
    route<DeliveriesQuery>({
      method: 'GET',
      tag,
      path: `${path}/{id}/deliveries`,
      params,
      scope: 'webhooks:read',
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook',
      description:
        'Newest first, and on the first page the last test events. kith keeps a delivery for 30 days after it has ended.',
      query: deliveriesQuery,
      hasDefaults: true,
      answer: deliveryPage,
      handle: async call => ({
        status: 200,
        data: await listDeliveries(call.context, idOf(call as Call), call.body, call.signal),
      }),
    }),
  ]
}
