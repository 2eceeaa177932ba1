import { type Route, route } from '../route/route.ts'
import { answerEntries } from './answer.ts'
import { storedId } from './batch.ts'
import { type AccessLogQuery, accessEntry, accessLogQuery, accessPage, linesType } from './schema.ts'

/** The route table of the access log. */
export function accessLogRoutes(): Route[] {
  return [
    route<AccessLogQuery>({
      method: 'GET',
      tag: 'Access',
      path: '/v1/access-log',
      scope: 'access:read',
      operationId: 'listAccesses',
      summary: 'Read the access log',
      description:
        'Who read or wrote which people and records, and the security events, newest first. With `Accept: application/x-ndjson` the ' +
        'response is lines, all of them without a `limit`. See docs/access-log.md.',
      query: accessLogQuery,
      answer: accessPage,
      mediaTypes: { [linesType]: accessEntry },
      handle: call => {
        const { entity } = call.body
        return answerEntries(call, entity === undefined ? undefined : [storedId(entity.toLowerCase())])
      },
    }),
  ]
}
