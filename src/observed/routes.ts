import { definitionCallOf } from '../organizations/change-definitions.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { answerObserved, declareObserved } from './observed.ts'
import {
  type DeclareBody,
  declareBody,
  declared,
  type ObservedQuery,
  observedKeys,
  observedLine,
  observedQuery,
} from './schema.ts'

const path = '/v1/schema/observed'
const tag = 'Attributes'

/** The route table of observed keys. */
export function observedRoutes(): Route[] {
  return [
    route<ObservedQuery>({
      method: 'GET',
      tag,
      path,
      scope: 'schema:read',
      operationId: 'listObservedKeys',
      summary: 'List the undeclared keys of stored values',
      description:
        'Counts the stored values of the newest 10,000 entities under keys that no attribute declares, for at most a second. With ' +
        '`Accept: application/x-ndjson` it counts those of all entities, and the response is lines: one per key, and at the end a line ' +
        'with the members of the answer besides `items`. Empty lines before them show that kith still reads.',
      query: observedQuery,
      answer: observedKeys,
      mediaTypes: { 'application/x-ndjson': observedLine },
      handle: answerObserved,
    }),
    route<DeclareBody>({
      method: 'PUT',
      tag,
      path: `${path}/declare`,
      scope: 'schema:write',
      operationId: 'declareObservedKey',
      summary: 'Declare an undeclared key as an attribute',
      description:
        'Counts which stored values the attribute would accept, then declares it, unless `dry_run` is true. Stored values stay ' +
        'and read unchanged.',
      body: declareBody,
      answer: declared,
      // A second declaration of a key is refused.
      repeats: 'once',
      refusals: { 409: 'duplicate_entry' },
      handle: dataOf(call => declareObserved(definitionCallOf(call), call.body, call.caller)),
    }),
  ]
}
