import type { Config } from '../config.ts'
import type { Call, Route } from '../http/pipeline/route.ts'
import { answerReceipt } from './receipts.ts'
import { consentReceipt, type ReceiptQuery, receiptQuery } from './schema.ts'

/** The receipts of a person's answers, by external and by internal identifier. */
export function receiptEndpoints({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  const endpointAt = (address: string, params: Route['params'], suffix: string, by: string): Route => ({
    method: 'GET',
    path: `/v1/people/${address}/consents/{consent_type_id}/{channel}/receipt`,
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
  })
  return [
    endpointAt('{external_id}', { external_id: 'external_id' }, '', ''),
    endpointAt('internal/{uuid}', { uuid: 'uuid' }, 'ById', ' by internal identifier'),
  ]
}
