import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { answerDuplicates } from './duplicates.ts'
import { type DuplicatesBody, duplicatesBody, duplicatesPage } from './duplicates-schema.ts'

/** The search for people who may be one. */
export function duplicatesEndpoints(): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/people/duplicates',
      scope: 'people:read',
      tag: 'People',
      prefersReader: true,
      operationId: 'findDuplicates',
      summary: 'Find people who may be one',
      description:
        'Returns groups of people who share an email, a phone number, or name and date of birth, with a score and the reasons. Groups by ' +
        'email come first, then by phone number, then by name. A group whose people all share an earlier key is not repeated. ' +
        'A page that takes longer than half a second ends early, with `has_more`.',
      body: duplicatesBody,
      answer: duplicatesPage,
      hasDefaults: true,
      handle: call => answerDuplicates(call as Call<DuplicatesBody>),
    },
  ]
}
