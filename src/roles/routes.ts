import { definitionCallOf, definitionWrite } from '../organizations/change-definitions.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import { requireGrantable } from '../route/caller.ts'
import { type Route, route } from '../route/route.ts'
import { createRole, findRole, patchRole, roleToJson } from './roles.ts'
import { newRole, type RoleBody, type RolePatch, roleList, rolePatch, role as roleSchema } from './schema.ts'

const path = '/v1/roles'
const tag = 'Roles'
const byKey = { tag, path: `${path}/{role_key}`, params: { role_key: 'key' }, answer: roleSchema } as const

/**
 * The route table of roles. A caller can give a role only scopes that it has itself. A caller whose own role names
 * fields cannot change roles.
 */
export function roleRoutes(): Route[] {
  return [
    definitionWrite<RoleBody>({
      method: 'POST',
      tag,
      path,
      scope: 'access:write',
      operationId: 'createRole',
      securityEvent: 'role_created',
      summary: 'Create a role',
      description:
        'A role says what the clients, tokens and sessions with it may do, and which fields of people and records they may read and write. ' +
        'A field that cannot be read is left out of every answer, and a request that names one is 403. See docs/roles.md.',
      body: newRole,
      answer: roleSchema,
      successes: { 201: 'Created.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        requireGrantable(call.caller, call.body.scopes)
        const role = await createRole(definitionCallOf(call), call.body)
        return { status: 201, data: roleToJson(role), headers: { Location: `${path}/${role.key}` } }
      },
    }),
    route({
      method: 'GET',
      tag,
      path,
      scope: 'access:read',
      fields: 'none',
      operationId: 'listRoles',
      summary: 'List the roles',
      answer: roleList,
      handle: async ({ context, signal }) => {
        const { roles } = await currentDefinitions(context, signal)
        return { status: 200, data: { items: roles.map(roleToJson) } }
      },
    }),
    route({
      method: 'GET',
      ...byKey,
      scope: 'access:read',
      fields: 'none',
      operationId: 'getRole',
      summary: 'Read a role',
      handle: async ({ context, params, signal }) => {
        const definitions = await currentDefinitions(context, signal)
        return { status: 200, data: roleToJson(findRole(definitions, params.role_key!)) }
      },
    }),
    definitionWrite<RolePatch>({
      method: 'PATCH',
      ...byKey,
      scope: 'access:write',
      operationId: 'patchRole',
      securityEvent: 'role_changed',
      summary: 'Change a role',
      description:
        'The change counts for the next request of everybody who has the role. An archived role refuses them. Any other change of what it opens ' +
        'needs all scopes of the role.',
      body: rolePatch,
      handle: async call => {
        const role = await patchRole(definitionCallOf(call), call.caller, call.params.role_key!, call.body)
        return { status: 200, data: roleToJson(role) }
      },
    }),
  ]
}
