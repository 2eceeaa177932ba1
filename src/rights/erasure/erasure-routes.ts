import { throwNoPerson } from '../../consents/history.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import type { Config } from '../../process/config.ts'
import type { Call } from '../../route/call.ts'
import { personAddresses, personOf } from '../../route/person-addresses.ts'
import { type HandlerResult, listPage } from '../../route/result.ts'
import { type Route, route } from '../../route/route.ts'
import { readOtherHolders } from '../subject.ts'
import { type ErasureRow, erasePerson, findToErase } from './erase-person.ts'
import { type EraseBody, type ErasuresQuery, eraseBody, erased, erasurePage, erasuresQuery } from './erasure-schema.ts'
import { listErasuresSql } from './erasure-sql.ts'

/** The route table of erasures. */
export function erasureRoutes({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  const erasing = personAddresses.map(
    ({ path, params, suffix, by }): Route => ({
      method: 'POST',
      path: `${path}/erase`,
      params,
      scope: 'people:erase',
      tag: 'People',
      operationId: `erasePerson${suffix}`,
      summary: `Erase a person${by}`,
      description:
        'Takes everything that kith holds about the person, and about everybody who was merged into it: also the values in the change ' +
        'log and in the log of others. It cannot be undone. A deleted person can be erased too. Asked again, the response is the same. ' +
        'See docs/rights.md.',
      versioned: 'request',
      body: eraseBody,
      answer: erased,
      refusals: { 409: 'invalid_parameter' },
      repeats: 'safe',
      successes: {
        200: 'Erased.',
        202: 'Erased for every reader. The log is long, and the rest of it is being erased: repeat the request.',
      },
      securityEvent: 'erasure',
      handle: call => answerErasure(ledgerOrigin, call as Call<EraseBody>),
    }),
  )
  return [
    ...erasing,
    route<ErasuresQuery>({
      method: 'GET',
      path: '/v1/erasures',
      scope: 'people:erase',
      tag: 'People',
      operationId: 'listErasures',
      summary: 'List erasures with their certificates, newest first',
      query: erasuresQuery,
      answer: erasurePage,
      handle: answerErasures,
    }),
  ]
}

/** The time for which a request continues a long erasure. It is answered before its deadline. */
const maxMs = 5_000

/** Erases the person of the path. Throws a Fault of 404, 409 or 412. */
async function answerErasure(originName: string, call: Call<EraseBody>): Promise<HandlerResult> {
  const { context, caller, params, request_id, body, signal, written, preferences } = call
  const { reason, records = 'keep', dry_run = false, override_hold = false } = body
  const erasing = { ...context, originName, signal, written, maxMs }
  const result = await erasePerson(erasing, {
    ...{ reason, records, dry_run, override_hold, if_match: preferences.if_match, actor: caller.subject, request_id },
    person_id: ({ tx: db, organization_id }) => findToErase({ db, organization_id }, personOf(params)),
  })
  if (!result) return throwNoPerson()
  const { person_id, merged_ids } = result.erasure
  // The log counts erased people but does not list them. A dry run shows that data about them exists.
  for (const id of [person_id, ...merged_ids])
    if (dry_run) call.shown.add(peopleStackId, id)
    else call.shown.addUnlisted(peopleStackId)
  const other_holders = await readOtherHolders(context, params.external_id, person_id, signal)
  return { status: result.completed || dry_run ? 200 : 202, data: { ...result, other_holders } }
}

const noId = 2_147_483_647
const defaultLimit = 50

/** Lists erasures, newest first. */
async function answerErasures({ context, body, signal }: Call<ErasuresQuery>): Promise<HandlerResult> {
  const { db, organization_id } = context
  const { before = noId, limit = defaultLimit } = body
  const rows = await db.query<ErasureRow>(listErasuresSql, [organization_id, before, limit + 1], signal)
  const toJson = ({ id, at, entity_id, actor, reason, records, completed_at, certificate }: ErasureRow) => {
    return { id, at, person_id: entity_id, actor, reason, records, completed_at, certificate }
  }
  return { status: 200, data: listPage(rows, limit, toJson) }
}
