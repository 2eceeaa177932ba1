import { addressOf, type EntityAddress } from './address.ts'
import { EndpointGroup } from './endpoint-group.ts'
import type { Call, CallOptions } from './options.ts'
import type {
  DeliverabilitySource,
  DeliverabilitySourceBody,
  DeliveryEvent,
  DeliveryEventPage,
  DeliveryEventStatuses,
  PersonDeliverability,
  SuppressionPage,
} from './wire.ts'

/** Selects suppressed addresses. `cursor` is the `next_cursor` of the page before. */
export type SuppressionListOptions = CallOptions & {
  channel?: 'email' | 'sms'
  reason?: 'hard_bounce' | 'soft_bounce' | 'complaint'
  search?: string
  cursor?: string
  limit?: number
}

/** The events of addresses that mail providers report, and the suppressed addresses. */
export class DeliverabilityEndpoints extends EndpointGroup {
  /**
   * Records bounces, complaints, deliveries and unsubscriptions, up to 1,000 at once. Returns a status for each. The scope is `people:write`.
   *
   * ```ts
   * const bounce = { channel: 'email', address: 'ada@example.com', type: 'hard_bounce', at: '2026-01-01T00:00:00Z' } as const
   * const { items } = await client.deliverability.record([bounce])
   * console.log(items[0]!.status) // stored
   * ```
   */
  record(events: DeliveryEvent[], options?: CallOptions): Call<DeliveryEventStatuses> {
    return this.send('POST /v1/deliverability', { body: { events } }, options)
  }

  /** Reads whether the addresses of a person are suppressed, and their last events. The scope is `people:read`. */
  of(address: EntityAddress, options?: CallOptions): Call<PersonDeliverability> {
    const { at, params } = addressOf(address)
    return this.send(`GET /v1/people${at}/deliverability`, { params }, options)
  }

  /** Lists the suppressed addresses, the latest first. The scope is `people:read`. */
  suppressed({
    channel,
    reason,
    search,
    cursor,
    limit,
    ...options
  }: SuppressionListOptions = {}): Call<SuppressionPage> {
    const query = { channel, reason, search, cursor, limit }
    return this.send('GET /v1/deliverability', { query }, options)
  }

  /** Reads the events of all addresses in pages. `record` of another kith accepts them. */
  events({
    cursor,
    limit,
    ...options
  }: Pick<SuppressionListOptions, 'cursor' | 'limit'> & CallOptions = {}): Call<DeliveryEventPage> {
    return this.send('GET /v1/deliverability/events', { query: { cursor, limit } }, options)
  }

  /** Lifts the suppression of an address. The scope is `people:write`. */
  lift(channel: string, address: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/deliverability/{channel}/{address}', { params: { channel, address } }, options)
  }

  /** Lists the mail providers that send events. The scope is `webhooks:read`. */
  sources(options?: CallOptions): Call<{ items: DeliverabilitySource[] }> {
    return this.send('GET /v1/deliverability/sources', {}, options)
  }

  /** Adds a mail provider, which sends its events to the `path` of the response. The scope is `webhooks:write`. */
  addSource(body: DeliverabilitySourceBody, options?: CallOptions): Call<DeliverabilitySource> {
    return this.send('POST /v1/deliverability/sources', { body }, options)
  }

  /** Removes a mail provider. The service then refuses its events. The scope is `webhooks:write`. */
  removeSource(key: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/deliverability/sources/{key}', { params: { key } }, options)
  }
}
