import type { EntityKind } from '../entities/entity-kind.ts'
import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { searchOwners } from './owners.ts'
import { type OwnersSearchBody, ownersSearchBody, ownersSearchPageSchema, searchHitSchema } from './schema.ts'

/** The route table of the search in people and records. `schemas` are the response schemas of both kinds of entity. */
export function searchRoutes(schemas: Record<'person' | 'record', EntityKind['answer']>): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/search',
      scope: 'people:read',
      fields: 'shown',
      prefersReader: true,
      operationId: 'search',
      summary: 'Search people and records',
      tag: 'Search',
      description:
        'Finds people, and records of the stacks that `owners` names, in one list. The text and the ranks are those of a search of people. ' +
        'A stack without a searchable attribute is searched for the external identifier only. Naming a stack needs the scope `records:read` too. ' +
        'A page ends before `size` if its hits are larger than 1 MiB.',
      body: ownersSearchBody,
      answer: ownersSearchPageSchema(searchHitSchema(schemas)),
      refusals: { 503: 'operation_failed' },
      handle: call => searchOwners(call as Call<OwnersSearchBody>),
    },
  ]
}
