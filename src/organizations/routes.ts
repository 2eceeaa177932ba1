import { type Route, route } from '../http/pipeline/route.ts'
import { describeOrganization } from './organizations.ts'
import { organization } from './schema.ts'

export function organizationRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/organization',
      scope: 'schema:read',
      operationId: 'getOrganization',
      summary: 'Read the organization, with its counts and limits',
      tag: 'Organization',
      answer: organization,
      handle: async ({ db, caller, limits, signal }) => ({
        status: 200,
        data: await describeOrganization(db, caller.organization.id, limits, signal),
      }),
    }),
  ]
}
