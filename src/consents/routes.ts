import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { listSchema } from '../organizations/definition-schema.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { type Route, route } from '../route/route.ts'
import { addressFields, summaryColumns } from '../values/profile-fields.ts'
import { createConsentType, findConsentType, patchConsentType } from './consent-types.ts'
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
import { addConsentText, findConsentText, listConsentTexts } from './texts.ts'

const path = '/v1/schema/consent-types'
const tag = 'Consent types'
const byId = { tag, path: '/v1/schema/consent-types/{id}', params: { id: 'number' }, answer: consent_type } as const

const texts = { tag, path: '/v1/schema/consent-types/{id}/texts', params: { id: 'number' } } as const

/** The route table of consent types, and of the numbers of their answers. */
export const consentRoutes = (): Route[] => [...typeRoutes(), ...textRoutes(), statisticsRoute()]

function typeRoutes(): Route[] {
  return [
    definitionWrite<ConsentTypeBody>({
      method: 'POST',
      tag,
      path,
      scope: 'schema:write',
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
      method: 'GET',
      tag,
      path,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'listConsentTypes',
      summary: 'List the consent types',
      answer: listSchema(consent_type),
      handle: async ({ context, signal }) => {
        const { consent_types } = await currentDefinitions(context, signal)
        return { status: 200, data: { items: consent_types } }
      },
    }),
    route({
      method: 'GET',
      ...byId,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getConsentType',
      summary: 'Read a consent type',
      handle: async ({ context, params, signal }) => {
        const definitions = await currentDefinitions(context, signal)
        return { status: 200, data: findConsentType(definitions, Number(params.id)) }
      },
    }),
    definitionWrite<ConsentTypePatch>({
      method: 'PATCH',
      ...byId,
      scope: 'schema:write',
      operationId: 'patchConsentType',
      summary: 'Change or archive a consent type',
      body: consentTypePatch,
      handle: async call => ({
        status: 200,
        data: await patchConsentType(definitionCallOf(call), Number(call.params.id), call.body),
      }),
    }),
  ]
}

function textRoutes(): Route[] {
  return [
    definitionWrite<ConsentTextBody>({
      method: 'POST',
      ...texts,
      scope: 'schema:write',
      operationId: 'addConsentText',
      summary: 'Add a text to a consent type',
      description:
        'The text gets the next version of the consent type and never changes. An answer names it in `text_version`.',
      body: newConsentText,
      answer: consentText,
      successes: { 201: 'Created.' },
      handle: async call => {
        const data = await addConsentText(definitionCallOf(call), Number(call.params.id), call.body)
        return { status: 201, data, headers: { Location: `${path}/${call.params.id}/texts/${data.version}` } }
      },
    }),
    route({
      method: 'GET',
      tag,
      path: '/v1/schema/consent-types/{id}/texts/{version}',
      params: { id: 'number', version: 'number' },
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getConsentText',
      summary: 'Read a text of a consent type',
      answer: consentText,
      handle: async ({ context, params, signal }) => ({
        status: 200,
        data: await findConsentText(context, Number(params.id), Number(params.version), signal),
      }),
    }),
    route<TextsQuery>({
      method: 'GET',
      ...texts,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'listConsentTexts',
      summary: 'List the texts of a consent type',
      query: textsQuery,
      answer: textPage,
      handle: async ({ context, params, body, signal }) => ({
        status: 200,
        data: await listConsentTexts(context, Number(params.id), body, signal),
      }),
    }),
  ]
}

const statisticsRoute = (): Route =>
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
    handle: async ({ context, body, signal }) => ({
      status: 200,
      data: await readConsentStatistics(context, body, signal),
    }),
  })
