import type { EntityKind } from '../../entities/entity-kind.ts'
import type { Call } from '../../route/call.ts'
import type { Route } from '../../route/route.ts'
import { aggregateEntities } from './aggregate.ts'
import { type AggregateBody, aggregateAnswer, aggregateBody, aggregateLine } from './schema.ts'
import { streamAggregate } from './stream.ts'

/** The endpoint that groups and measures a kind of entity. */
export function aggregateEndpoint(kind: EntityKind): Route {
  const { path, params, plural } = kind
  return {
    method: 'POST',
    scope: kind.reads,
    fields: 'shown',
    hasDefaults: true,
    tag: plural,
    path: `${path}/aggregate`,
    params,
    prefersReader: true,
    operationId: `aggregate${plural}`,
    summary: `Count, sum and group ${plural.toLowerCase()}`,
    description:
      'Groups the entities that pass a filter, and measures each group, all at one moment. More than 10,000 groups are refused, and ' +
      'streamed with `Accept: application/x-ndjson`: one per line, and at the end a line with the members of the answer besides `groups`. ' +
      'The token needs the read scope of every kind of entity that the request reads.',
    body: aggregateBody,
    answer: aggregateAnswer,
    mediaTypes: { 'application/x-ndjson': aggregateLine },
    prefers: ['handling=strict'],
    handle: async call => {
      const answer = call.mediaType === undefined ? aggregateEntities : streamAggregate
      return answer(call as Call<AggregateBody>, await kind.stackOf(call))
    },
  }
}
