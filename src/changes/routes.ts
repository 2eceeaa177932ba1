import type { Route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import type { FeedCall } from './change-streams.ts'
import { eventsType, feedChanges, linesType } from './changes.ts'
import { change, changePage, changesQuery } from './schema.ts'
import type { FindSegments } from './selection.ts'

const events = Type.String({
  description:
    'Server-sent events: `id` is the number of a change, `event` its subject and operation, `data` the change.',
  examples: ['id: 1204\nevent: person.updated\ndata: {"sequence":1204}\n\n'],
})

/** The route table of the change log. `findSegments` comes from the module of segments, which imports this one. */
export function changeRoutes(findSegments: FindSegments): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/changes',
      scope: 'changes:read',
      fields: 'shown',
      prefersReader: true,
      operationId: 'listChanges',
      summary: 'Read or follow the change log',
      tag: 'Changes',
      description:
        'Returns the changes after a number, in order, with none missing. A token sees the subjects whose read scope it has. ' +
        'A page may have fewer items than `limit`: continue from `last`. With `Accept: application/x-ndjson` the response ' +
        'has every change up to the newest, one per line. With `Accept: text/event-stream` it never ends: each change ' +
        'becomes an event, and `Last-Event-ID` takes the place of `after`. With `segment` it has the changes by which somebody ' +
        'entered or left a segment. See docs/changes.md.',
      query: changesQuery,
      answer: changePage,
      follows: true,
      mediaTypes: { [linesType]: change, [eventsType]: events },
      successHeaders: {
        'Kith-Log-Id': 'On streams, the `log_id` of the numbering.',
        'Kith-Log-Head': 'On streams, the number of the newest change when the stream began.',
        'X-Kith-Warning': 'On streams, which subjects the token does not see, where a page has `warnings`.',
      },
      refusals: { 409: 'invalid_parameter', 410: 'invalid_parameter' },
      handle: call => feedChanges(call as FeedCall, findSegments),
    },
  ]
}
