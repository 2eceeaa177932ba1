import { EndpointGroup } from './endpoint-group.ts'
import { Listing, listingOfAll, numberOf, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions, WriteOptions } from './options.ts'
import type {
  Webhook,
  WebhookBody,
  WebhookDelivery,
  WebhookDeliveryPage,
  WebhookPatch,
  WebhookReplay,
  WebhookReplayed,
  WebhookTest,
  WebhookWithSecret,
} from './wire.ts'

/** The options of a write of a webhook. */
export type WebhookOptions = CallOptions & Pick<WriteOptions, 'idempotencyKey'>

/** Selects deliveries of a status or a state. A page has 50 by default, at most 500. */
export type DeliveryOptions = PageOptions & {
  status?: WebhookDelivery['status']
  state?: WebhookDelivery['state']
} & CallOptions

/** The webhooks of an organization. The scopes are `webhooks:read` and `webhooks:write`. */
export class WebhookEndpoints extends EndpointGroup {
  /**
   * Creates a webhook. Its secret is shown only in this result. The token also needs the scopes that read the
   * subjects of the events.
   *
   * ```ts
   * const { id, secret } = await client.webhooks.create({
   *   url: 'https://receiver.example/kith',
   *   events: ['person.*'],
   *   keys: ['email'],
   * })
   * console.log(id, secret.startsWith('whsec_')) // 2 true
   * ```
   */
  create(body: WebhookBody, options?: WebhookOptions): Call<WebhookWithSecret> {
    return this.send('POST /v1/webhooks', { body }, options)
  }

  /**
   * Lists all webhooks.
   *
   * ```ts
   * const webhooks = await client.webhooks.list().all()
   * console.log(webhooks.map(webhook => webhook.events.join()).join()) // person.*
   * ```
   */
  list(options?: CallOptions): Listing<Webhook> {
    return listingOfAll(() => this.send('GET /v1/webhooks', {}, options))
  }

  /**
   * Reads a webhook.
   *
   * ```ts
   * const { active, disabled } = await client.webhooks.get(1)
   * console.log(active, disabled) // true null
   * ```
   */
  get(id: number, options?: CallOptions): Call<Webhook> {
    return this.send('GET /v1/webhooks/{id}', { params: { id } }, options)
  }

  /**
   * Changes the fields that the body names. `active: false` pauses the webhook, and `active: true` resumes it at its
   * position.
   *
   * ```ts
   * const paused = await client.webhooks.update(1, { active: false })
   * console.log(paused.active) // false
   * ```
   */
  update(id: number, body: WebhookPatch, options?: WebhookOptions): Call<Webhook> {
    return this.send('PATCH /v1/webhooks/{id}', { params: { id }, body }, options)
  }

  /**
   * Deletes a webhook. Requests under way may still arrive.
   *
   * ```ts
   * console.log(await client.webhooks.delete(1)) // true
   * ```
   */
  delete(id: number, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/webhooks/{id}', { params: { id } }, options)
  }

  /**
   * Makes a second secret, which is shown only in this result. Both secrets sign for 24 hours.
   *
   * ```ts
   * const { secret } = await client.webhooks.rotate(1)
   * console.log(secret.startsWith('whsec_')) // true
   * ```
   */
  rotate(id: number, options?: WebhookOptions): Call<WebhookWithSecret> {
    return this.send('POST /v1/webhooks/{id}/rotate', { params: { id } }, options)
  }

  /**
   * Lists the deliveries of a webhook, newest first. The first page also has the last `tests`.
   *
   * ```ts
   * const { items } = await client.webhooks.deliveries(1, { state: 'failing' }).page()
   * console.log(items.length) // 0
   * ```
   */
  deliveries(id: number, options: DeliveryOptions = {}): Listing<WebhookDelivery, Pick<WebhookDeliveryPage, 'tests'>> {
    const { status, state, size, after, ...callOptions } = options
    const read = (before?: string) => {
      const query = { status, state, before: numberOf(before), limit: size }
      return this.send('GET /v1/webhooks/{id}/deliveries', { params: { id }, query }, callOptions)
    }
    return new Listing(after => pageOf(read(after), ({ sequence }) => sequence), after)
  }

  /**
   * Sends a test event once, also to an inactive webhook, and returns the outcome.
   *
   * ```ts
   * const { delivered, response_status } = await client.webhooks.test(1)
   * console.log(delivered, response_status) // true 204
   * ```
   */
  test(id: number, options?: CallOptions): Call<WebhookTest> {
    return this.send('POST /v1/webhooks/{id}/test', { params: { id } }, options)
  }

  /**
   * Sends the matching changes of a range again, in the background, with their original `webhook-id`. Without `until`,
   * the range ends at the position of the webhook.
   *
   * ```ts
   * const { position } = await client.webhooks.get(1)
   * const range = await client.webhooks.replay(1, { after: position - 2 })
   * console.log(range.until - range.after) // 2
   * ```
   */
  replay(id: number, body: WebhookReplay, options?: WebhookOptions): Call<WebhookReplayed> {
    return this.send('POST /v1/webhooks/{id}/replay', { params: { id }, body }, options)
  }
}
