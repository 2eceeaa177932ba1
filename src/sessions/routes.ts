import { type Route, route } from '../http/pipeline/route.ts'
import { Type } from '../json-schema.ts'
import { sessionList } from './schema.ts'
import { listSessions, revokeSession } from './sessions.ts'

const path = '/v1/sessions'
const tag = 'Access'

/** The route table of the sessions of the console. */
export function sessionRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      tag,
      path,
      scope: 'access:read',
      operationId: 'listSessions',
      summary: 'List the sessions of the console',
      description: 'The sessions that have not ended, newest first, at most 1,000.',
      answer: sessionList,
      handle: async ({ global, caller, signal }) => ({
        status: 200,
        data: { items: await listSessions(global, caller.organization.id, signal) },
      }),
    }),
    route({
      method: 'DELETE',
      tag,
      path: `${path}/{session_id}`,
      params: { session_id: 'uuid' },
      scope: 'access:write',
      operationId: 'revokeSession',
      summary: 'End a session of the console',
      description: 'Its cookie is refused within ten seconds.',
      answer: Type.Literal(true),
      handle: async ({ global, caller, params, signal }) => {
        await revokeSession(global, caller.organization.id, params.session_id!, signal)
        return { status: 200, data: true }
      },
    }),
  ]
}
