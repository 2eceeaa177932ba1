import type { Config } from '../config.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { pageSchema } from '../entities/schema.ts'
import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { lookUpPeople } from './lookup.ts'
import { type LookupBody, lookupBody } from './lookup-schema.ts'

/** The endpoint that finds people by what they are recognized by. `person` is the schema of a read. */
export function lookupEndpoints({ limits }: Pick<Config, 'limits'>, person: EntityKind['answer']): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/people/lookup',
      scope: 'people:read',
      operationId: 'lookUpPeople',
      summary: 'Find people by email, phone or external identifier',
      tag: 'People',
      description:
        'The body has one of `email`, `mobile_number` with `mobile_prefix`, and `external_id`. Returns the people who have it, at most ' +
        '100 in order of their identifiers, or none.',
      body: lookupBody(limits),
      answer: pageSchema(person),
      handle: call => lookUpPeople(call as Call<LookupBody>),
    },
  ]
}
