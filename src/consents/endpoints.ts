import type { LinkSettings } from '../consent-links/consent-links.ts'
import { type PersonAddress, personAddresses } from '../route/person-addresses.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { addressFields, summaryColumns } from '../values/profile-fields.ts'
import { answerContactable, answerContactableMany } from './contactable.ts'
import { readHistory, readInForce } from './history.ts'
import {
  type ConsentHistoryQuery,
  type ContactableBody,
  type ContactableManyBody,
  consentHistoryPage,
  consentHistoryQuery,
  consentsInForce,
  contactableBody,
  contactableManyBody,
  contactDecision,
  contactDecisions,
} from './schema.ts'

const answers = ['consents', ...summaryColumns]
const shared = { tag: 'People', scope: 'consents:read', fields: [...answers, ...addressFields] } as const

/** The endpoints that read the consents of people. */
export function consentEndpoints(config: LinkSettings): Route[] {
  return [
    route<ContactableManyBody>({
      ...shared,
      method: 'POST',
      path: '/v1/people/contactable',
      operationId: 'decideContacts',
      summary: 'Tell which people may be written to',
      description:
        'Decides about up to 1,000 people from one snapshot. The items have the order of the request. With `links`, each has the link that ' +
        'a message to the person carries.',
      body: contactableManyBody,
      answer: contactDecisions,
      handle: call => answerContactableMany(call, config),
    }),
    ...personAddresses.flatMap(address => endpointsAt(address, config)),
  ]
}

function endpointsAt({ path, params, suffix, by }: PersonAddress, config: LinkSettings): Route[] {
  return [
    {
      ...shared,
      method: 'GET',
      path: `${path}/consents`,
      params,
      operationId: `listConsents${suffix}`,
      summary: `List the consents of a person${by}`,
      description:
        'The consents that a read of the person shows. `address_refused` is true where the person may not be written to all the same, because ' +
        'somebody with the same address refused.',
      answer: consentsInForce,
      handle: dataOf(readInForce),
    },
    route<ConsentHistoryQuery>({
      ...shared,
      method: 'GET',
      path: `${path}/consents/history`,
      fields: answers,
      params,
      operationId: `listConsentHistory${suffix}`,
      summary: `List the consent answers of a person${by}`,
      description:
        'Newest first, with the evidence that was given. The answers of one write are never divided: a page ends with the ' +
        'write that reaches `limit`. The history of a deleted person remains.',
      query: consentHistoryQuery,
      answer: consentHistoryPage,
      handle: dataOf(readHistory),
    }),
    route<ContactableBody>({
      ...shared,
      method: 'POST',
      path: `${path}/contactable`,
      params,
      operationId: `decideContact${suffix}`,
      summary: `Tell whether a person may be written to${by}`,
      description:
        'With `at`, the decision at that time: by the person, the consent type and the answers that kith had recorded, but without ' +
        'the rule `address_answer`: the answers of addresses have no past.',
      body: contactableBody,
      answer: contactDecision,
      handle: call => answerContactable(call, config),
    }),
  ]
}
