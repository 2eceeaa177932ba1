import { pathOf, pathOfId } from './entity-reads.ts'
import type { CallOptions } from './options.ts'
import { queryOf } from './query.ts'
import type { Send } from './transport.ts'
import type { ConsentReceipt, LedgerEntry } from './wire.ts'

/** A purpose on a channel, which a person answered. */
export type AnsweredPurpose = Pick<LedgerEntry, 'consent_type_id' | 'channel'>

/** The options of a receipt: `sequence`, the number of a change, selects an older answer than the one that stands. */
export type ReceiptOptions = { sequence?: number } & CallOptions

/** The receipts of consent answers. The scope is `consents:read`. `kith verify` verifies a receipt without a server. */
export class ReceiptEndpoints {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Reads the receipt of the answer that stands. The service waits until the answer is sealed, usually less than a second.
   *
   * ```ts
   * await client.people.patch('ada', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
   * const receipt = await client.receipts.get('ada', { consent_type_id: 1, channel: 'email' })
   * console.log(receipt.entry.state, receipt.tlog_proof.split('\n')[0]) // true c2sp.org/tlog-proof@v1
   * ```
   */
  get(external_id: string, purpose: AnsweredPurpose, options?: ReceiptOptions): Promise<ConsentReceipt> {
    return this.#read(pathOf(external_id), purpose, options)
  }

  /**
   * Reads the receipt of an answer by the internal identifier of the person, also of a deleted one.
   *
   * ```ts
   * const { id } = await client.people.patch('ada', { email_consent: false }, { representation: true })
   * await client.people.delete('ada')
   * const receipt = await client.receipts.getById(id, { consent_type_id: 1, channel: 'email' })
   * console.log(receipt.entry.person_id === id, receipt.entry.state) // true false
   * ```
   */
  getById(id: string, purpose: AnsweredPurpose, options?: ReceiptOptions): Promise<ConsentReceipt> {
    return this.#read(pathOfId(id), purpose, options)
  }

  async #read(
    path: string,
    { consent_type_id, channel }: AnsweredPurpose,
    { sequence, ...options }: ReceiptOptions = {},
  ): Promise<ConsentReceipt> {
    const address = `/v1/people${path}/consents/${consent_type_id}/${channel}/receipt${queryOf({ sequence })}`
    const request = { method: 'GET', path: address, options, repeatable: true, writes: false } as const
    return (await this.#send(request)) as ConsentReceipt
  }
}
