import { answerEntries } from '../accesses/answer.ts'
import { type AccessesQuery, accessEntry, accessesQuery, accessPage, linesType } from '../accesses/schema.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Call } from '../route/call.ts'
import { personAddresses, personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import type { Route } from '../route/route.ts'
import { findSubject } from './dossier-sql.ts'

/** The accesses of a person, by external and by internal identifier. */
export const accessesEndpoints = (): Route[] =>
  personAddresses.map(({ path, params, suffix, by }) => ({
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
    handle: call => answerAccesses(call as Call<AccessesQuery>),
  }))

async function answerAccesses(call: Call<AccessesQuery>): Promise<HandlerResult> {
  const { context, params, signal } = call
  const { by, identifier } = personOf(params)
  type Subject = { id: string; merged_ids: string[] }
  const [subject] = await context.db.query<Subject>(findSubject[by], [context.organization_id, identifier], signal)
  const { id, merged_ids } = subject ?? throwNoPerson()
  return answerEntries(call, [id, ...merged_ids])
}
