import { dataOf, type Route, route } from '../route/route.ts'
import { definitionCallOf, definitionWrite } from './change-definitions.ts'
import { describeOrganization } from './organizations.ts'
import { organization } from './schema.ts'
import { patchSettings, readSettings } from './settings.ts'
import { type SettingsPatch, settings, settingsPatch } from './settings-schema.ts'

const settingsPath = { path: '/v1/schema/settings', tag: 'Organization', answer: settings } as const

export function organizationRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/organization',
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getOrganization',
      summary: 'Read the organization, with its counts and limits',
      tag: 'Organization',
      answer: organization,
      handle: dataOf(({ context, limits, signal }) => describeOrganization(context, limits, signal)),
    }),
    route({
      method: 'GET',
      ...settingsPath,
      scope: 'schema:read',
      fields: 'none',
      operationId: 'getSettings',
      summary: 'Read the settings of the pages for people',
      description: 'The pages are those that the links of POST /v1/people/{external_id}/consent-links lead to.',
      handle: dataOf(({ context, signal }) => readSettings(context, signal)),
    }),
    definitionWrite<SettingsPatch>({
      method: 'PATCH',
      ...settingsPath,
      scope: 'schema:write',
      operationId: 'patchSettings',
      summary: 'Change the settings of the pages for people',
      description: 'Only the given settings change. `null` clears one.',
      body: settingsPatch,
      securityEvent: 'settings_changed',
      handle: dataOf(call => patchSettings(definitionCallOf(call), call.body)),
    }),
  ]
}
