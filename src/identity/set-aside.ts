import { newUuid } from '../entities/identifiers.ts'
import type { Address } from '../entities/write-request.ts'
import { definitionCallOf } from '../organizations/change-definitions.ts'
import { changeOrganization, type Locked } from '../organizations/change-organization.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { type HandlerResult, listPage } from '../route/result.ts'
import { createValueRefusal, Fault, pointer, refuse, refuseValues } from '../values/errors.ts'
import { findPeople } from './identity-write.ts'
import type { ListedSetAside, SetAsideBody, SetAsidesQuery } from './set-aside-schema.ts'
import { deleteSetAsideSql, findSetAsideSql, insertSetAsideSql, listSetAsidesSql } from './set-aside-sql.ts'

const defaultLimit = 20
const afterAll = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Declares that no two of these people are the same, so the search for duplicates leaves out their pairs. The rows keep
 * the people as named now, and reads follow merges, so a merge or unmerge changes no row. A repeated request gets the
 * same response. Throws a Fault of 400 or 404.
 */
export async function setPeopleAside(call: Call<SetAsideBody>): Promise<HandlerResult> {
  const { caller, body } = call
  const named = namedIn(body)
  const change = definitionCallOf(call)
  const listed = await changeOrganization(change, change, async locked => {
    const { tx, organization_id, at } = locked
    const people = await readPeople(locked, named)
    const [standing] = await tx.query<{ id: string }>(findSetAsideSql, [organization_id, people])
    const id = standing?.id ?? newUuid()
    if (!standing) await tx.query(insertSetAsideSql, [organization_id, id, people, caller.subject, at])
    const result = async () =>
      (await tx.query<ListedSetAside>(listSetAsidesSql, [organization_id, afterAll, 1, id]))[0]!
    return { changes: [], result }
  })
  call.shown.addAll(peopleStackId, listed.people)
  const people = listed.people.map(({ id, external_id }) => ({ id, external_id }))
  return { status: 200, data: { ...listed, people } }
}

/** Takes a set-aside back. Throws a Fault of 404. */
export async function takeBackSetAside(call: Call): Promise<HandlerResult> {
  const change = definitionCallOf(call)
  const people = await changeOrganization(change, change, async ({ tx, organization_id }) => {
    const values = [organization_id, call.params.uuid]
    const gone = await tx.query<{ person_id: string }>(deleteSetAsideSql, values)
    if (gone.length === 0) refuse('not_found', 'There is no such set-aside.')
    return { changes: [], result: gone.map(({ person_id }) => person_id) }
  })
  call.shown.addAll(peopleStackId, people)
  return { status: 200, data: true }
}

/** Lists set-asides, the newest first. */
export async function listSetAsides(call: Call<SetAsidesQuery>): Promise<HandlerResult> {
  const { context, body, signal } = call
  const { before = afterAll, limit = defaultLimit } = body
  const values = [context.organization_id, before, limit + 1, null]
  const rows = await context.db.query<ListedSetAside>(listSetAsidesSql, values, signal)
  const data = listPage(rows, limit)
  for (const { people } of data.items) call.shown.addAll(peopleStackId, people)
  return { status: 200, data }
}

/**
 * The people that a body names, and the member that names them. Throws a Fault of 400 unless exactly one member does.
 */
function namedIn({ ids, external_ids }: SetAsideBody): { name: keyof SetAsideBody; addresses: Address[] } {
  if ((ids === undefined) === (external_ids === undefined))
    throw new Fault(createValueRefusal('/external_ids', 'Give either `external_ids` or `ids`.'))
  return ids
    ? { name: 'ids', addresses: ids.map(id => ({ id })) }
    : { name: 'external_ids', addresses: external_ids!.map(external_id => ({ external_id })) }
}

/**
 * The internal identifiers of the people. Throws a Fault of 404 if one is missing, and of 400 if two names lead to one
 * person.
 */
async function readPeople(
  { tx, organization_id }: Locked,
  { name, addresses }: ReturnType<typeof namedIn>,
): Promise<string[]> {
  const ids = new Set<string>()
  for (const [index, person] of (await findPeople({ db: tx, organization_id }, addresses)).entries()) {
    const path = pointer(name, String(index))
    if (!person) throw new Fault(createValueRefusal(path, 'There is no such person.', 'not_found'))
    if (ids.has(person.id)) refuseValues({ path, message: 'leads to the same person as another one. Name each once.' })
    ids.add(person.id)
  }
  return [...ids]
}
