import { isKithError } from './errors.ts'
import { segment } from './json.ts'
import type { CallOptions, WriteOptions } from './options.ts'
import { queryOf } from './query.ts'
import type { Request, Send } from './transport.ts'
import type {
  NewWebhook,
  Webhook,
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

/** Selects deliveries: of a status or a state, of changes before a number. A page has 50 by default, at most 500. */
export type DeliveryOptions = {
  status?: WebhookDelivery['status']
  state?: WebhookDelivery['state']
  before?: number
  limit?: number
} & CallOptions

/** The webhooks of an organization. The scopes are `webhooks:read` and `webhooks:write`. */
export class WebhookEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Creates a webhook. Its secret is shown only in this result. The token also needs the scopes that read what the events
   * tell of.
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
  create(body: NewWebhook, options?: WebhookOptions): Promise<WebhookWithSecret> {
    return this.#write('POST', '', body, options, false)
  }

  /**
   * Lists all webhooks.
   *
   * ```ts
   * const webhooks = await client.webhooks.list()
   * console.log(webhooks.map(webhook => webhook.events.join()).join()) // person.*
   * ```
   */
  async list(options?: CallOptions): Promise<Webhook[]> {
    return (await this.#read<{ items: Webhook[] }>('', options)).items
  }

  /**
   * Reads a webhook.
   *
   * ```ts
   * const { active, disabled } = await client.webhooks.get(1)
   * console.log(active, disabled) // true null
   * ```
   */
  get(id: number, options?: CallOptions): Promise<Webhook> {
    return this.#read(pathOf(id), options)
  }

  /**
   * Changes the fields that the body names. `active: false` pauses the webhook, and `active: true` lets it go on from its
   * position.
   *
   * ```ts
   * const paused = await client.webhooks.update(1, { active: false })
   * console.log(paused.active) // false
   * ```
   */
  update(id: number, body: WebhookPatch, options?: WebhookOptions): Promise<Webhook> {
    // Repeating the request is safe: the same values are no change.
    return this.#write('PATCH', pathOf(id), body, options, true)
  }

  /**
   * Deletes a webhook. Requests under way may still arrive.
   *
   * ```ts
   * console.log(await client.webhooks.delete(1)) // true
   * ```
   */
  async delete(id: number, options?: CallOptions): Promise<true> {
    try {
      return await this.#write<true>('DELETE', pathOf(id), undefined, options, true)
    } catch (error) {
      if (isKithError(error, 'not_found') && error.answerLost) return true
      throw error
    }
  }

  /**
   * Makes a second secret, which is shown only in this result. Both sign for 24 hours.
   *
   * ```ts
   * const { secret } = await client.webhooks.rotate(1)
   * console.log(secret.startsWith('whsec_')) // true
   * ```
   */
  rotate(id: number, options?: WebhookOptions): Promise<WebhookWithSecret> {
    return this.#write('POST', `${pathOf(id)}/rotate`, undefined, options, false)
  }

  /**
   * Reads the deliveries of a webhook, newest first. If `has_more` is true, older ones follow: pass the `sequence` of the
   * last item as `before`. A page without `before` also has the last `tests`.
   *
   * ```ts
   * const { items } = await client.webhooks.deliveries(1, { state: 'failing' })
   * console.log(items.length) // 0
   * ```
   */
  deliveries(id: number, options: DeliveryOptions = {}): Promise<WebhookDeliveryPage> {
    const { status, state, before, limit, ...callOptions } = options
    return this.#read(`${pathOf(id)}/deliveries${queryOf({ status, state, before, limit })}`, callOptions)
  }

  /**
   * Sends a test event once, also to an inactive webhook, and returns the outcome.
   *
   * ```ts
   * const { delivered, response_status } = await client.webhooks.test(1)
   * console.log(delivered, response_status) // true 204
   * ```
   */
  async test(id: number, options?: CallOptions): Promise<WebhookTest> {
    // Each request sends an event, so it is not repeated if its response is lost. An Idempotency-Key would hold a
    // transaction open while the receiver responds.
    const request = { method: 'POST', path: `${path}${pathOf(id)}/test`, repeatable: false, writes: false } as const
    return (await this.#send({ ...request, options })) as WebhookTest
  }

  /**
   * Sends the matching changes of a range again, in the background, with the `webhook-id` that they had. Without `until`,
   * the range ends at the position of the webhook.
   *
   * ```ts
   * const { position } = await client.webhooks.get(1)
   * const range = await client.webhooks.replay(1, { after: position - 2 })
   * console.log(range.until - range.after) // 2
   * ```
   */
  replay(id: number, body: WebhookReplay, options?: WebhookOptions): Promise<WebhookReplayed> {
    return this.#write('POST', `${pathOf(id)}/replay`, body, options, true)
  }

  async #read<T>(rest: string, options: CallOptions | undefined): Promise<T> {
    const request = { method: 'GET', path: path + rest, options, repeatable: true, writes: false } as const
    return (await this.#send(request)) as T
  }

  async #write<T>(
    method: Request['method'],
    rest: string,
    body: unknown,
    options: WebhookOptions | undefined,
    repeatable: boolean,
  ): Promise<T> {
    return (await this.#send({ method, path: path + rest, body, options, repeatable, writes: true })) as T
  }
}

const path = '/v1/webhooks'
const pathOf = (id: number): string => `/${segment(String(id))}`
