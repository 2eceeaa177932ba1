import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { answerHistory, type HistoryKind } from './history.ts'
import { type HistoryQuery, historyPage, historyQuery } from './schema.ts'

/** The histories of a kind of entity, by external and by internal identifier. */
export function historyEndpoints(kind: HistoryKind): Route[] {
  const { path, params, noun, singular, plural, identifier, reads } = kind
  const shared = {
    method: 'GET',
    scope: reads,
    fields: 'shown',
    tag: plural,
    query: historyQuery,
    answer: historyPage,
    handle: (call: Call) => answerHistory(kind, call as Call<HistoryQuery>),
  } as const
  const scopes = 'The token also needs the scope `changes:read`.'
  return [
    {
      ...shared,
      path: `${path}/{external_id}/history`,
      params: { ...params, external_id: 'external_id' },
      operationId: `list${singular}History`,
      summary: `List the changes of a ${noun}`,
      description: `Newest first. ${scopes}`,
    },
    {
      ...shared,
      path: `${path}/internal/{${identifier.name}}/history`,
      params: { ...params, [identifier.name]: identifier.kind },
      operationId: `list${singular}HistoryById`,
      summary: `List the changes of a ${noun} by internal identifier`,
      description: `Newest first. A deleted ${noun} has a history too. ${scopes}`,
    },
  ]
}
