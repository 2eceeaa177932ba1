import { Type } from 'typebox'
import type { Limits } from '../config.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { pageSchema } from '../entities/schema.ts'
import type { Call, Route } from '../http/pipeline/route.ts'
import { filterEntities, listEntities, relatedEntities } from './handlers.ts'
import {
  type FilterBody,
  filterBody,
  filterPageSchema,
  type ListBody,
  listBody,
  type RelatedBody,
  relatedBody,
} from './schema.ts'

/** What a read of either kind answers: what is related with a person may be a record, and the other way round. */
export type Answers = Record<'person' | 'record', EntityKind['answer']>

const everyKind = 'Reads of every kind of entity that it touches: the token needs the read scope of each.'

/** The reading endpoints of a kind of entity: list, filter, and related at both addresses. */
export function readingEndpoints(kind: EntityKind, answers: Answers, limits: Pick<Limits, 'page'>): Route[] {
  const { path, params, noun, singular, plural, identifier } = kind
  const format = identifier.kind === 'uuid' ? 'uuid' : 'object-id'
  const reading = { method: 'POST', scope: kind.reads, hasDefaults: true, tag: plural } as const
  const page = pageSchema(kind.answer)
  const related = (by: string, address: string, parameters: Route['params'] & {}, suffix: string): Route => ({
    ...reading,
    path: `${path}${address}/related`,
    params: { ...params, ...parameters },
    operationId: `list${singular}Related${suffix}`,
    summary: `List what is linked with a ${noun}${by}`,
    description: everyKind,
    body: relatedBody(limits.page),
    answer: Type.Union([pageSchema(answers.person), pageSchema(answers.record)]),
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
      description: everyKind,
      body: filterBody(format, limits.page),
      answer: filterPageSchema(kind.answer),
      prefers: ['handling=strict'],
      example: { body: { filter: { 'attribute_values.city': 'London' } } },
      handle: async call => filterEntities(call as Call<FilterBody>, await kind.stackOf(call)),
    },
    related('', '/{external_id}', { external_id: 'external_id' }, ''),
    related(
      ' by internal identifier',
      `/internal/{${identifier.name}}`,
      { [identifier.name]: identifier.kind },
      'ById',
    ),
  ]
}
