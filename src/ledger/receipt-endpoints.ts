import type { Config } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { personAddresses } from '../route/person-addresses.ts'
import type { Route } from '../route/route.ts'
import { answerReceipt } from './receipts.ts'
import { consentReceipt, type ReceiptQuery, receiptQuery } from './schema.ts'

/** The receipts of a person's answers, by external and by internal identifier. */
export function receiptEndpoints({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  return personAddresses.map(({ path, params, suffix, by }) => ({
    method: 'GET',
    path: `${path}/consents/{consent_type_id}/{channel}/receipt`,
    params: { ...params, consent_type_id: 'number', channel: 'key' },
    scope: 'consents:read',
    tag: 'People',
    operationId: `getConsentReceipt${suffix}`,
    summary: `Read the receipt of a consent answer${by}`,
    description:
      'A consent receipt of ISO/IEC TS 27560 in JSON-LD, signed, with the proof that the ledger sealed the answer. `kith verify` ' +
      'verifies it without a server. The request waits until the answer is sealed, usually less than a second. See docs/receipts.md.',
    query: receiptQuery,
    answer: consentReceipt,
    refusals: { 410: 'invalid_parameter' },
    handle: call => answerReceipt(ledgerOrigin, call as Call<ReceiptQuery>),
  }))
}
