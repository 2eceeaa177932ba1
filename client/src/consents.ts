import { addressOf, type EntityAddress } from './address.ts'
import { EndpointGroup } from './endpoint-group.ts'
import { Listing, numberOf, type PageOptions, pageOf } from './listing.ts'
import type { Call, CallOptions } from './options.ts'
import type {
  ConsentLinks,
  ConsentLinksBody,
  ConsentReceipt,
  ConsentStatistics,
  ConsentStatisticsBody,
  ConsentsInForce,
  ContactableBody,
  ContactDecision,
  ContactDecisions,
  RecordedAnswer,
} from './wire.ts'

/** A purpose on a channel. */
export type ContactPurpose = Pick<ContactableBody, 'consent_type_id' | 'channel'>

/**
 * The options of a consent history: a consent type and a channel select answers. A page ends with the write that
 * reaches `size` answers (100 by default, at most 1,000).
 */
export type ConsentHistoryOptions = Partial<ContactPurpose> & PageOptions & CallOptions

/**
 * The options of decisions. `links` makes the links that a message carries, and also takes the scope `people:write`.
 * People who may be contacted get `one_click_url`, for the headers of RFC 8058. People whose grant waits for its
 * confirmation get `confirm_url`.
 */
export type ContactManyOptions = CallOptions & { links?: boolean }

/** The options of a decision about one person. `at`, a Date or a time of RFC 3339 with its offset, is its time. */
export type ContactOptions = ContactManyOptions & { at?: string | Date }

/** The options of a receipt. `sequence`, the number of a change, selects an older answer than the current one. */
export type ReceiptOptions = { sequence?: number } & CallOptions

/**
 * The consents of people: their answers with the evidence, decisions whether they may be contacted, and links by which
 * they answer. The scope is `consents:read`, and `people:write` to make links.
 */
export class ConsentEndpoints extends EndpointGroup {
  /**
   * Lists the consent answers of a person, newest first, with their evidence. The last external identifier of a deleted
   * person also finds the history.
   *
   * ```ts
   * const consent = { consent_type_id: 1, channel: 'email' as const, state: true, method: 'paper' as const }
   * await client.people.patch('ada', { consents: [consent] })
   * const { items } = await client.consents.history('ada').page()
   * console.log(items[0]?.state, items[0]?.method, items[0]?.superseded) // true paper false
   * ```
   */
  history(address: EntityAddress, options: ConsentHistoryOptions = {}): Listing<RecordedAnswer> {
    const { at, params } = addressOf(address)
    const { consent_type_id, channel, size, after, ...rest } = options
    const read = (before?: string) => {
      const query = { consent_type_id, channel, before_version: numberOf(before), limit: size }
      return this.send(`GET /v1/people${at}/consents/history`, { params, query }, rest)
    }
    return new Listing(after => pageOf(read(after), ({ version }) => version), after)
  }

  /**
   * Lists the consents of a person. If another person with the same address refused, `address_refused` is true, and
   * this person must not be contacted even after a grant.
   *
   * ```ts
   * const { items } = await client.consents.list('ada')
   * console.log(items.some(({ address_refused }) => address_refused)) // false
   * ```
   */
  list(address: EntityAddress, options?: CallOptions): Call<ConsentsInForce> {
    const { at, params } = addressOf(address)
    return this.send(`GET /v1/people${at}/consents`, { params }, options)
  }

  /**
   * Decides whether a person may be contacted, with the reasons. `sequence` is the number of the newest change at the
   * time of the decision.
   *
   * ```ts
   * await client.people.patch('ada', { email: 'ada@example.com', email_consent: true })
   * const { allowed, reasons } = await client.consents.contactable('ada', { consent_type_id: 1, channel: 'email' })
   * for (const reason of reasons) if (reason.rule === 'answer') console.log(allowed, reason.state, reason.version) // true true 2
   * ```
   */
  contactable(
    address: EntityAddress,
    { consent_type_id, channel }: ContactPurpose,
    { at: moment, links, ...options }: ContactOptions = {},
  ): Call<ContactDecision> {
    const { at, params } = addressOf(address)
    const body = { consent_type_id, channel, links, at: moment }
    return this.send(`POST /v1/people${at}/contactable`, { params, body }, options)
  }

  /**
   * Decides for up to 1,000 people whether they may be contacted, in the order of the names and at one moment.
   *
   * ```ts
   * await client.people.patch('grace', { email: 'grace@example.com', email_consent: true })
   * const names = ['ada', 'grace', 'nobody']
   * const { items } = await client.consents.contactableMany(names, { consent_type_id: 1, channel: 'email' })
   * console.log(items.filter(item => item.allowed).map(item => item.external_id).join()) // grace
   * const linked = await client.consents.contactableMany(names, { consent_type_id: 1, channel: 'email' }, { links: true })
   * console.log(linked.items.map(item => typeof item.one_click_url).join()) // undefined,string,undefined
   * ```
   */
  contactableMany(
    external_ids: readonly string[],
    { consent_type_id, channel }: ContactPurpose,
    { links, ...options }: ContactManyOptions = {},
  ): Call<ContactDecisions> {
    const body = { external_ids, consent_type_id, channel, links }
    return this.send('POST /v1/people/contactable', { body }, options)
  }

  /**
   * Counts the answers in force at the end of each interval, and the people who may be contacted now, by consent type
   * and channel. There are 30 intervals by default, at most 400.
   *
   * ```ts
   * await client.people.patch('ada', { email: 'ada@example.com', email_consent: true })
   * const { ends, items } = await client.consents.statistics({ interval: 'day', consent_type_id: 1, channel: 'email' })
   * console.log(ends.length, items[0]?.granted.at(-1), items[0]?.contactable) // 30 1 1
   * ```
   */
  statistics(body: ConsentStatisticsBody, options?: CallOptions): Call<ConsentStatistics> {
    return this.send('POST /v1/consents/statistics', { body }, options)
  }

  /**
   * Reads the receipt of the current answer. The service waits until the answer is sealed, usually less than a second.
   * `kith verify` verifies the receipt offline.
   *
   * ```ts
   * await client.people.patch('ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
   * const receipt = await client.consents.receipt('ada', { consent_type_id: 1, channel: 'email' })
   * console.log(receipt.entry.state, receipt.tlog_proof.split('\n')[0]) // true c2sp.org/tlog-proof@v1
   * ```
   */
  receipt(
    address: EntityAddress,
    purpose: ContactPurpose,
    { sequence, ...options }: ReceiptOptions = {},
  ): Call<ConsentReceipt> {
    const { at, params } = addressOf(address)
    return this.send(
      `GET /v1/people${at}/consents/{consent_type_id}/{channel}/receipt`,
      { params: { ...params, ...purpose }, query: { sequence } },
      options,
    )
  }

  /**
   * Makes links to the pages where a person sees and changes consents, without a session. Anyone with a link can use
   * it. The service does not store links, so make new ones for each message. Takes the scope `people:write`.
   *
   * ```ts
   * const { preferences_url, unsubscribe_url } = await client.consents.links('ada', { consent_type_id: 1, channel: 'email' })
   * console.log(new URL(preferences_url).pathname.slice(0, 3), new URL(unsubscribe_url).pathname.slice(0, 3)) // /p/ /u/
   * ```
   */
  links(address: EntityAddress, body: ConsentLinksBody = {}, options?: CallOptions): Call<ConsentLinks> {
    const { at, params } = addressOf(address)
    return this.send(`POST /v1/people${at}/consent-links`, { params, body }, options)
  }
}
