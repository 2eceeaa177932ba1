import type { Call, Route } from '../http/pipeline/route.ts'
import { answerConsentHistory } from './history.ts'
import { type ConsentHistoryQuery, consentHistoryPage, consentHistoryQuery } from './schema.ts'

const tag = 'People'
const scope = 'consents:read'

/** The two addresses of a person. */
const addresses = [
  { path: '/v1/people/{external_id}', params: { external_id: 'external_id' }, suffix: '', by: '' },
  { path: '/v1/people/internal/{uuid}', params: { uuid: 'uuid' }, suffix: 'ById', by: ' by internal identifier' },
] as const

/** The endpoints that read the consents of people. */
export function consentEndpoints(): Route[] {
  return addresses.map(({ path, params, suffix, by }) => ({
    method: 'GET',
    tag,
    scope,
    path: `${path}/consents/history`,
    params,
    operationId: `listConsentHistory${suffix}`,
    summary: `List the consent answers of a person${by}`,
    description:
      'Newest first, with the evidence that was given. The answers of one write are never divided: a page ends with the ' +
      'write that reaches `limit`. The history of a deleted person remains.',
    query: consentHistoryQuery,
    answer: consentHistoryPage,
    handle: call => answerConsentHistory(call as Call<ConsentHistoryQuery>),
  }))
}
