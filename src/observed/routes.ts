import { type Route, route } from '../http/pipeline/route.ts'
import { definitionCallOf } from '../organizations/change-definitions.ts'
import { peopleKey } from '../organizations/definitions.ts'
import { declareObserved } from './declare.ts'
import { listObserved } from './observed.ts'
import { type DeclareBody, declareBody, declared, type ObservedQuery, observedKeys, observedQuery } from './schema.ts'

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
      summary: 'List the undeclared keys that values were written under',
      description:
        'Counts the values that creates and updates wrote under keys that were not declared, from the beginning of the change ' +
        'log. The counts follow the writes within seconds: `sequence` is the last change that they include.',
      query: observedQuery,
      answer: observedKeys,
      handle: async ({ db, caller, body, signal }) => ({
        status: 200,
        data: await listObserved(db, caller.organization.id, body.owner ?? peopleKey, signal),
      }),
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
      handle: async call => ({
        status: 200,
        data: await declareObserved(definitionCallOf(call), call.body, call.caller),
      }),
    }),
  ]
}
