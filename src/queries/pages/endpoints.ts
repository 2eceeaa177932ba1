import type { EntityKind } from '../../entities/entity-kind.ts'
import type { Limits } from '../../process/config.ts'
import type { Call } from '../../route/call.ts'
import type { Route } from '../../route/route.ts'
import { Type } from '../../values/json-schema.ts'
import { aggregateEntities, streamAggregate } from '../aggregates/aggregate.ts'
import { type AggregateBody, aggregateAnswer, aggregateBody, aggregateLine } from '../aggregates/schema.ts'
import {
  answerSchema,
  type FilterBody,
  filterBody,
  type ListBody,
  listBody,
  maxNamed,
  type NamedBody,
  namedAnswer,
  namedBody,
  type RelatedBody,
  relatedBody,
} from '../schema.ts'
import { filterEntities, getEntities, listEntities, relatedEntities } from './handlers.ts'

/** The response schemas of both kinds of entity. The related endpoints need both: a person may be related to a record. */
export type EntitySchemas = Record<'person' | 'record', EntityKind['answer']>

const scopesDescription = 'The token needs the read scope of every kind of entity that the request reads.'

const readingOf = ({ reads, plural }: EntityKind) =>
  ({ method: 'POST', scope: reads, fields: 'shown', prefersReader: true, hasDefaults: true, tag: plural }) as const

/** The read endpoints of a kind of entity: list, filter, and related by external and by internal identifier. */
export function readingEndpoints(kind: EntityKind, schemas: EntitySchemas, limits: Pick<Limits, 'page'>): Route[] {
  const { path, params, noun, singular, plural, identifier } = kind
  const format = identifier.kind === 'uuid' ? 'uuid' : 'object-id'
  const reading = readingOf(kind)
  const page = answerSchema(kind.answer, schemas, 'List')
  const related = (by: string, address: string, parameters: Route['params'] & {}, suffix: string): Route => ({
    ...reading,
    path: `${path}${address}/related`,
    params: { ...params, ...parameters },
    operationId: `list${singular}Related${suffix}`,
    summary: `List the entities linked with a ${noun}${by}`,
    description: scopesDescription,
    body: relatedBody(limits.page),
    answer: Type.Union([schemas.person, schemas.record].map(element => answerSchema(element, schemas, 'Related'))),
    example: { body: { target: 'people', direction: 'incoming' } },
    handle: async call => relatedEntities(kind, call as Call<RelatedBody>, await kind.stackOf(call)),
  })
  return [
    {
      ...reading,
      path: `${path}/list`,
      params,
      operationId: `list${plural}`,
      summary: `List ${plural.toLowerCase()}`,
      body: listBody(format, limits.page),
      answer: page,
      example: { body: { cursor_configuration: { size: 100 }, sorting_type: 'asc' } },
      handle: async call => listEntities(call as Call<ListBody>, await kind.stackOf(call)),
    },
    {
      ...reading,
      path: `${path}/filter`,
      params,
      operationId: `filter${plural}`,
      summary: `Filter ${plural.toLowerCase()}`,
      description: scopesDescription,
      body: filterBody(format, limits.page),
      answer: answerSchema(kind.answer, schemas, 'Filter'),
      prefers: ['handling=strict'],
      example: { body: { filter: { 'attribute_values.city': 'London' } } },
      handle: async call => filterEntities(call as Call<FilterBody>, await kind.stackOf(call)),
    },
    {
      ...reading,
      path: `${path}/get`,
      params,
      operationId: `get${plural}`,
      summary: `Read up to ${maxNamed.toLocaleString('en')} ${plural.toLowerCase()} by their identifiers`,
      description: `The items are in the order of the identifiers. ${scopesDescription}`,
      body: namedBody(format),
      answer: namedAnswer(kind.answer, schemas),
      example: { body: { external_ids: ['ada'], fields: ['external_id', 'version'] } },
      handle: async call => getEntities(kind, call as Call<NamedBody>, await kind.stackOf(call)),
    },
    aggregateEndpoint(kind),
    related('', '/{external_id}', { external_id: 'external_id' }, ''),
    related(
      ' by internal identifier',
      `/internal/{${identifier.name}}`,
      { [identifier.name]: identifier.kind },
      'ById',
    ),
  ]
}

/** The endpoint that groups and measures a kind of entity. */
function aggregateEndpoint(kind: EntityKind): Route {
  const { path, params, plural } = kind
  return {
    ...readingOf(kind),
    path: `${path}/aggregate`,
    params,
    operationId: `aggregate${plural}`,
    summary: `Count, sum and group ${plural.toLowerCase()}`,
    description:
      'Groups the entities that pass a filter, and measures each group, all at one moment. More than 10,000 groups are refused, and ' +
      'streamed with `Accept: application/x-ndjson`: one per line, and at the end a line with the members of the answer besides `groups`. ' +
      scopesDescription,
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
