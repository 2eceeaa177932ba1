import type { Config } from '../config.ts'
import { entityEndpoints } from '../entities/endpoints.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { type Answers, readingEndpoints } from '../filters/endpoints.ts'
import type { Route } from '../http/pipeline/route.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { transferEndpoints } from '../transfer/endpoints.ts'
import { person, personBody } from './schema.ts'

export function peopleRoutes({ limits }: Config, answers: Answers): Route[] {
  const people: EntityKind = {
    noun: 'person',
    singular: 'Person',
    plural: 'People',
    path: '/v1/people',
    params: {},
    identifier: {
      name: 'uuid',
      kind: 'uuid',
      field: 'id',
      toUuid: text => text.toLowerCase(),
      fromUuid: uuid => uuid,
    },
    reads: 'people:read',
    writes: 'people:write',
    body: personBody(limits),
    answer: person,
    // The contract's PATCH documents 200, 400 and 500 alone: a missing person is 500 there, a taken name 400.
    patchStatuses: { not_found: 500, duplicate_entry: 400 },
    stackOf: () => peopleStackId,
  }
  return [
    ...entityEndpoints(people, limits),
    ...readingEndpoints(people, answers, limits),
    ...transferEndpoints(people),
  ]
}
