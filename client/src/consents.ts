import { type Address, identified, named } from './entity-reads.ts'
import type { CallOptions } from './options.ts'
import type { Send } from './transport.ts'
import type {
  ConsentHistoryPage,
  ConsentLinks,
  ConsentLinksBody,
  ConsentReceipt,
  ConsentStatistics,
  ConsentStatisticsBody,
  ContactableBody,
  ContactDecision,
  ContactDecisions,
} from './wire.ts'

/** A purpose on a channel. */
export type ContactPurpose = Pick<ContactableBody, 'consent_type_id' | 'channel'>

/**
 * The options of a consent history: only the answers to a consent type, on a channel, of versions before `before_version`. A page
 * ends with the write that reaches `limit` answers (100 by default, at most 1,000).
 */
export type ConsentHistoryOptions = Partial<ContactPurpose> & { before_version?: number; limit?: number } & CallOptions

/** The options of a decision about one person: `at`, a time of RFC 3339 with its offset or a Date, asks for the decision of then. */
export type ContactOptions = CallOptions & { at?: string | Date }

/** The options of a receipt: `sequence`, the number of a change, selects an older answer than the one that stands. */
export type ReceiptOptions = { sequence?: number } & CallOptions

/**
 * The consents of people: what they answered, the proof of it, whether they may be written to, and the links by which they answer. The
 * scope is `consents:read`, and `people:write` to make links.
 */
export class ConsentEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Reads the consent answers of a person, newest first, with their evidence. If `has_more` is true, older ones follow: pass the
   * `version` of the last item as `before_version`. The last name of a deleted person leads to the history, too.
   *
   * ```ts
   * const consent = { consent_type_id: 1, channel: 'email' as const, state: true, method: 'paper' as const }
   * await client.people.patch('ada', { consents: [consent] })
   * const { items } = await client.consents.history('ada')
   * console.log(items[0]?.state, items[0]?.method, items[0]?.superseded) // true paper false
   * ```
   */
  history(external_id: string, options?: ConsentHistoryOptions): Promise<ConsentHistoryPage> {
    return this.#history(named(external_id), options)
  }

  /**
   * Reads the consent answers of a person by the internal identifier, also those of a deleted one.
   *
   * ```ts
   * const { id } = await client.people.patch('ada', { email_consent: false }, { representation: true })
   * await client.people.delete('ada')
   * const { items, has_more } = await client.consents.historyById(id, { channel: 'email' })
   * console.log(items.map(answer => answer.state).join(), has_more) // false false
   * ```
   */
  historyById(id: string, options?: ConsentHistoryOptions): Promise<ConsentHistoryPage> {
    return this.#history(identified(id), options)
  }

  /**
   * Tells whether a person may be written to, and why. `sequence` is the number of the newest change when kith decided.
   *
   * ```ts
   * await client.people.patch('ada', { email: 'ada@example.com', email_consent: true })
   * const { allowed, reasons } = await client.consents.contactable('ada', { consent_type_id: 1, channel: 'email' })
   * for (const reason of reasons) if (reason.rule === 'answer') console.log(allowed, reason.state, reason.version) // true true 2
   * ```
   */
  contactable(external_id: string, purpose: ContactPurpose, options?: ContactOptions): Promise<ContactDecision> {
    return this.#decide(named(external_id), purpose, options)
  }

  /**
   * Tells whether a person may be written to, by the internal identifier.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * const decision = await client.consents.contactableById(id, { consent_type_id: 1, channel: 'sms' })
   * console.log(decision.allowed, decision.reasons.map(reason => reason.rule).join()) // false no_address,default
   * ```
   */
  contactableById(id: string, purpose: ContactPurpose, options?: ContactOptions): Promise<ContactDecision> {
    return this.#decide(identified(id), purpose, options)
  }

  /**
   * Tells which of up to 1,000 people may be written to, in their order and from one moment.
   *
   * ```ts
   * await client.people.patch('grace', { email: 'grace@example.com', email_consent: true })
   * const names = ['ada', 'grace', 'nobody']
   * const { items } = await client.consents.contactableMany(names, { consent_type_id: 1, channel: 'email' })
   * console.log(items.filter(item => item.allowed).map(item => item.external_id).join()) // grace
   * ```
   */
  contactableMany(
    external_ids: readonly string[],
    { consent_type_id, channel }: ContactPurpose,
    options?: CallOptions,
  ): Promise<ContactDecisions> {
    return this.#send('POST /v1/people/contactable', { body: { external_ids, consent_type_id, channel } }, options)
  }

  /**
   * Counts the answers in force at the end of each interval, and the people who may be written to now, by consent type and channel. There
   * are at most 400 intervals, and 30 by default.
   *
   * ```ts
   * await client.people.patch('ada', { email: 'ada@example.com', email_consent: true })
   * const { ends, items } = await client.consents.statistics({ interval: 'day', consent_type_id: 1, channel: 'email' })
   * console.log(ends.length, items[0]?.granted.at(-1), items[0]?.contactable) // 30 1 1
   * ```
   */
  statistics(body: ConsentStatisticsBody, options?: CallOptions): Promise<ConsentStatistics> {
    return this.#send('POST /v1/consents/statistics', { body }, options)
  }

  /**
   * Reads the receipt of the answer that stands. The service waits until the answer is sealed, usually less than a second. Verify it
   * without a server by `kith verify`.
   *
   * ```ts
   * await client.people.patch('ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
   * const receipt = await client.consents.receipt('ada', { consent_type_id: 1, channel: 'email' })
   * console.log(receipt.entry.state, receipt.tlog_proof.split('\n')[0]) // true c2sp.org/tlog-proof@v1
   * ```
   */
  receipt(external_id: string, purpose: ContactPurpose, options?: ReceiptOptions): Promise<ConsentReceipt> {
    return this.#receipt(named(external_id), purpose, options)
  }

  /**
   * Reads the receipt of an answer by the internal identifier of the person, also of a deleted one.
   *
   * ```ts
   * const { id } = await client.people.patch('ada', { email_consent: false }, { representation: true })
   * await client.people.delete('ada')
   * const receipt = await client.consents.receiptById(id, { consent_type_id: 1, channel: 'email' })
   * console.log(receipt.entry.person_id === id, receipt.entry.state) // true false
   * ```
   */
  receiptById(id: string, purpose: ContactPurpose, options?: ReceiptOptions): Promise<ConsentReceipt> {
    return this.#receipt(identified(id), purpose, options)
  }

  /**
   * Makes links to the pages where a person sees and changes consents, without a session. Everyone who has a link can do so.
   * Nothing is stored, so make them for each message. Takes the scope `people:write`.
   *
   * ```ts
   * const { preferences_url, unsubscribe_url } = await client.consents.links('ada', { consent_type_id: 1, channel: 'email' })
   * console.log(new URL(preferences_url).pathname.slice(0, 3), new URL(unsubscribe_url).pathname.slice(0, 3)) // /p/ /u/
   * ```
   */
  links(external_id: string, body: ConsentLinksBody = {}, options?: CallOptions): Promise<ConsentLinks> {
    return this.#links(named(external_id), body, options)
  }

  /**
   * Makes the links of a person by the internal identifier.
   *
   * ```ts
   * const { id } = await client.people.get('ada')
   * const links = await client.consents.linksById(id, { expires_in: 3600 })
   * console.log('confirm_url' in links) // false
   * ```
   */
  linksById(id: string, body: ConsentLinksBody = {}, options?: CallOptions): Promise<ConsentLinks> {
    return this.#links(identified(id), body, options)
  }

  #links({ at, params }: Address, body: ConsentLinksBody, options: CallOptions | undefined): Promise<ConsentLinks> {
    return this.#send(`POST /v1/people${at}/consent-links`, { params, body }, options)
  }

  #history({ at, params }: Address, options: ConsentHistoryOptions = {}): Promise<ConsentHistoryPage> {
    const { consent_type_id, channel, before_version, limit, ...rest } = options
    const query = { consent_type_id, channel, before_version, limit }
    return this.#send(`GET /v1/people${at}/consents/history`, { params, query }, rest)
  }

  #decide(
    { at: address, params }: Address,
    { consent_type_id, channel }: ContactPurpose,
    { at, ...options }: ContactOptions = {},
  ): Promise<ContactDecision> {
    return this.#send(
      `POST /v1/people${address}/contactable`,
      { params, body: { consent_type_id, channel, at } },
      options,
    )
  }

  #receipt(
    { at, params: { ...person } }: Address,
    purpose: ContactPurpose,
    { sequence, ...options }: ReceiptOptions = {},
  ): Promise<ConsentReceipt> {
    const params = { ...person, ...purpose }
    return this.#send(
      `GET /v1/people${at}/consents/{consent_type_id}/{channel}/receipt`,
      { params, query: { sequence } },
      options,
    )
  }
}
