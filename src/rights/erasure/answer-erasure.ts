import { peopleStackId } from '../../organizations/definitions.ts'
import type { Call } from '../../route/call.ts'
import { type HandlerResult, listPage } from '../../route/result.ts'
import { refuse } from '../../values/errors.ts'
import { readOtherHolders } from '../other-holders.ts'
import { type ErasureRow, erasePerson, type FindPerson } from './erase-person.ts'
import type { EraseBody, ErasuresQuery } from './erasure-schema.ts'
import { findByIdSql, findNamedSql, listErasuresSql } from './erasure-sql.ts'

/** A request goes on with a long erasure for this time, and is answered before its deadline. */
const maxMs = 5_000

/** Erases the person of the path. Throws a Fault of 404, 409 or 412. */
export async function answerErasure(originName: string, call: Call<EraseBody>): Promise<HandlerResult> {
  const { context, caller, params, request_id, body, signal, written, preferences } = call
  const { reason, records = 'keep', dry_run = false, override_hold = false } = body
  const asked = { person_id: finderOf(call), reason, records, dry_run, override_hold, if_match: preferences.if_match }
  const request = { ...asked, actor: caller.subject, request_id }
  const erasing = { ...context, originName, signal, written, maxMs }
  const result = await erasePerson(erasing, request)
  if (!result) return throwNoPerson()
  const { person_id, merged_ids } = result.erasure
  // The log counts those who were erased, and lists them no more.
  for (const _ of [person_id, ...merged_ids]) call.shown.addUnlisted(peopleStackId)
  const other_holders = await readOtherHolders(context, { name: params.external_id, person_id }, signal)
  return { status: result.completed || dry_run ? 200 : 202, data: { ...result, other_holders } }
}

/** Finds the person, deleted or not, the one it was merged into, or the one who was erased with this identifier. */
function finderOf({ context: { organization_id }, params }: Call<EraseBody>): FindPerson {
  const { uuid, external_id } = params
  const statement = uuid === undefined ? findNamedSql : findByIdSql
  const identifier = uuid?.toLowerCase() ?? external_id!
  return async db => {
    const [found] = await db.query<{ id: string | null }>(statement, [organization_id, identifier])
    return found!.id ?? undefined
  }
}

const throwNoPerson = (): never => refuse('not_found', 'There is no such person.')

const noId = 2_147_483_647
const defaultLimit = 50

/** Lists erasures, newest first. */
export async function answerErasures({ context, body, signal }: Call<ErasuresQuery>): Promise<HandlerResult> {
  const { db, organization_id } = context
  const { before = noId, limit = defaultLimit } = body
  const rows = await db.query<ErasureRow>(listErasuresSql, [organization_id, before, limit + 1], signal)
  const toJson = ({ id, at, entity_id: person_id, ...row }: ErasureRow) => {
    const { actor, reason, records, completed_at, certificate } = row
    return { id, at, person_id, actor, reason, records, completed_at, certificate }
  }
  return { status: 200, data: listPage(rows, limit, toJson) }
}
