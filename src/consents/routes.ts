import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { addressFields, summaryColumns } from '../values/profile-fields.ts'
import {
  addConsentText,
  createConsentType,
  findConsentText,
  findConsentType,
  listConsentTexts,
  patchConsentType,
} from './consent-types.ts'
import {
  type ConsentTextBody,
  type ConsentTypeBody,
  type ConsentTypePatch,
  consent_type,
  consentText,
  consentTypePatch,
  newConsentText,
  newConsentType,
  type TextsQuery,
  textPage,
  textsQuery,
} from './schema.ts'
import { readConsentStatistics } from './statistics.ts'
import { type ConsentStatisticsBody, consentStatistics, statisticsBody } from './statistics-schema.ts'

const path = '/v1/schema/consent-types'
const reads = { method: 'GET', tag: 'Consent types', scope: 'schema:read', fields: 'none' } as const
const writes = { method: 'POST', tag: 'Consent types', scope: 'schema:write' } as const
const byId = { path: `${path}/{id}`, params: { id: 'number' } } as const
const texts = { path: `${path}/{id}/texts`, params: { id: 'number' } } as const
const idOf = ({ params }: Call<unknown>) => Number(params.id)

/** The route table of consent types, and of the numbers of their answers. */
export const consentRoutes = (): Route[] => [
  definitionWrite<ConsentTypeBody>({
    ...writes,
    path,
    operationId: 'createConsentType',
    summary: 'Create a consent type',
    description: 'If it is marked as the default of a channel, the previous default loses the mark.',
    body: newConsentType,
    answer: consent_type,
    successes: { 201: 'Created.' },
    refusals: { 409: 'duplicate_entry' },
    handle: async call => {
      const data = await createConsentType(definitionCallOf(call), call.body)
      return { status: 201, data, headers: { Location: `${path}/${data.id}` } }
    },
  }),
  route({
    ...reads,
    path,
    operationId: 'listConsentTypes',
    summary: 'List the consent types',
    answer: listSchema(consent_type),
    handle: dataOf(async ({ context, signal }) => ({
      items: (await currentDefinitions(context, signal)).consent_types,
    })),
  }),
  route({
    ...reads,
    ...byId,
    operationId: 'getConsentType',
    summary: 'Read a consent type',
    answer: consent_type,
    handle: dataOf(async call => findConsentType(await currentDefinitions(call.context, call.signal), idOf(call))),
  }),
  definitionWrite<ConsentTypePatch>({
    ...writes,
    ...byId,
    method: 'PATCH',
    operationId: 'patchConsentType',
    summary: 'Change or archive a consent type',
    body: consentTypePatch,
    answer: consent_type,
    handle: dataOf(call => patchConsentType(definitionCallOf(call), idOf(call), call.body)),
  }),
  definitionWrite<ConsentTextBody>({
    ...writes,
    ...texts,
    operationId: 'addConsentText',
    summary: 'Add a text to a consent type',
    description:
      'The text gets the next version of the consent type and never changes. An answer names it in `text_version`.',
    body: newConsentText,
    answer: consentText,
    successes: { 201: 'Created.' },
    handle: async call => {
      const data = await addConsentText(definitionCallOf(call), idOf(call), call.body)
      return { status: 201, data, headers: { Location: `${path}/${call.params.id}/texts/${data.version}` } }
    },
  }),
  route({
    ...reads,
    path: `${texts.path}/{version}`,
    params: { id: 'number', version: 'number' },
    operationId: 'getConsentText',
    summary: 'Read a text of a consent type',
    answer: consentText,
    handle: dataOf(call => findConsentText(call.context, idOf(call), Number(call.params.version), call.signal)),
  }),
  route<TextsQuery>({
    ...reads,
    ...texts,
    operationId: 'listConsentTexts',
    summary: 'List the texts of a consent type',
    query: textsQuery,
    answer: textPage,
    handle: dataOf(call => listConsentTexts(call.context, idOf(call), call.body, call.signal)),
  }),
  route<ConsentStatisticsBody>({
    method: 'POST',
    tag: 'Consents',
    path: '/v1/consents/statistics',
    scope: 'consents:read',
    fields: ['consents', ...summaryColumns, ...addressFields],
    operationId: 'countConsents',
    summary: 'Count the answers in force over time',
    description:
      'For each consent type and channel: how many answers granted, refused or waited at the end of each interval, of the people who were ' +
      'there then, and how many people may be written to now. The answers of erased people are gone from all intervals.',
    body: statisticsBody,
    answer: consentStatistics,
    prefersReader: true,
    handle: dataOf(({ context, body, signal }) => readConsentStatistics(context, body, signal)),
  }),
]
