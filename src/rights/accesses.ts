import { answerEntries } from '../accesses/answer.ts'
import { type AccessesQuery, accessEntry, accessesQuery, accessPage, linesType } from '../accesses/schema.ts'
import { personAddresses } from '../route/person-addresses.ts'
import { type Route, route } from '../route/route.ts'
import { readSubject } from './subject.ts'

/** The endpoints that list the accesses to a person, by external and by internal identifier. */
export const accessesEndpoints = (): Route[] =>
  personAddresses.map(({ path, params, suffix, by }) =>
    route<AccessesQuery>({
      method: 'GET',
      path: `${path}/accesses`,
      params,
      scope: 'access:read',
      tag: 'People',
      operationId: `listPersonAccesses${suffix}`,
      summary: `List who read or wrote a person${by}`,
      description:
        'The entries of the access log that list the person, or somebody who was merged into it, newest first. A deleted person has them too. ' +
        'See docs/access-log.md.',
      query: accessesQuery,
      answer: accessPage,
      mediaTypes: { [linesType]: accessEntry },
      handle: async call => answerEntries(call, await readSubject(call.context, call, call.signal)),
    }),
  )
