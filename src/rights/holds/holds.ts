import { throwNoPerson } from '../../consents/history.ts'
import type { Within } from '../../db/context.ts'
import { definitionCallOf, differences } from '../../organizations/change-definitions.ts'
import { changeOrganization, type DefinitionDiff } from '../../organizations/change-organization.ts'
import { peopleStackId } from '../../organizations/definitions.ts'
import type { Call } from '../../route/call.ts'
import { type HandlerResult, listPage } from '../../route/result.ts'
import { refuse, throwBrokenRule } from '../../values/errors.ts'
import { readSubject } from '../subject.ts'
import { isErasedSql, listHoldsSql, nextHoldIdSql, readHeldSql, readHoldsOfSql, storeHoldSql } from './holds-sql.ts'
import type { HoldBody, HoldShape, HoldsQuery } from './schema.ts'

/** A row of `person_holds`, with the people at the time of the hold. */
type Hold = Omit<HoldShape, 'people'> & { people: string[] }

const defaultLimit = 50

/** The ids of the people who are held at a time, by a hold of their own or of a person who was merged into them. */
export async function readHeld({ tx, organization_id }: Within, people: readonly string[], at: string) {
  const held = await tx.query<{ id: string }>(readHeldSql, [organization_id, people, at])
  return new Set(held.map(({ id }) => id))
}

const readHoldsOf = ({ tx, organization_id }: Within, people: readonly string[], at: string) =>
  tx.query<Hold>(readHoldsOfSql, [organization_id, people, at])

/** Throws 409 if one of `people` is held: a person, and the people who were merged into it. */
export async function throwIfHeld(within: Within, people: readonly string[], at: string) {
  const [hold] = await readHoldsOf(within, people, at)
  if (!hold) return
  const message =
    'The person is under a legal hold, so it is not erased. End the hold first, or send override_hold: true.'
  refuse('invalid_parameter', message, {
    status: 409,
    details: [{ path: '/override_hold', message: `must be true to erase in spite of hold ${hold.id}` }],
  })
}

/**
 * Returns the person of a path, deleted or not, and the people who were merged into it. Throws a Fault of 404, also for
 * an erased person.
 */
async function findPeople({ tx, organization_id }: Within, call: Call<unknown>): Promise<string[]> {
  const people = await readSubject({ db: tx, organization_id }, call)
  return (await wasErased({ tx, organization_id }, people[0]!)) ? throwNoPerson() : people
}

/** Whether a person was erased and did not come back. */
export const wasErased = async ({ tx, organization_id }: Within, person_id: string): Promise<boolean> =>
  (await tx.query(isErasedSql, [organization_id, person_id])).length > 0

const logged = ({ people, reason, until }: Pick<Hold, 'people' | 'reason' | 'until'>) => ({ people, reason, until })

const diff = (id: number, operation: DefinitionDiff['operation'], before: object, after: object): DefinitionDiff => ({
  ...{ subject: 'hold', id, operation, before, after },
})

const store = ({ tx, organization_id }: Within, hold: Hold, released_at: string | null = null) => {
  const { id, people, reason, until, actor, created_at } = hold
  return tx.query(storeHoldSql, [organization_id, id, people, reason, until, actor, created_at, released_at])
}

/** Holds the person of the path, or changes its hold. Throws a Fault of 400 or 404. */
export async function holdPerson(call: Call<HoldBody>): Promise<HandlerResult> {
  const change = definitionCallOf(call)
  const { reason } = call.body
  const until = call.body.until ? new Date(call.body.until).toISOString() : null
  if (until !== null && Date.parse(until) <= Date.now()) throwBrokenRule('/until', 'must be in the future')
  const held = await changeOrganization(change, change, async locked => {
    const { tx, organization_id, at } = locked
    const people = await findPeople(locked, call)
    const [current] = await readHoldsOf(locked, people, at)
    const [{ id }] = current ? [current] : ((await tx.query(nextHoldIdSql, [organization_id])) as [{ id: number }])
    const made = { id, actor: change.actor, created_at: at, ...current }
    const next = { ...made, people: [...new Set([...(current?.people ?? []), ...people])], reason, until }
    const changed = current ? differences(logged(current), logged(next)) : { before: {}, after: logged(next) }
    const result = async () => (await tx.query<HoldShape>(listHoldsSql, [organization_id, at, id - 1, 1, null]))[0]!
    if (!changed) return { changes: [], result }
    const entry = diff(id, current ? 'update' : 'create', changed.before, changed.after)
    return { statements: [store(locked, next)], changes: [entry], result }
  })
  call.shown.addAll(peopleStackId, held.people)
  return { status: 200, data: held }
}

/** Ends the holds of the person of the path. A person who was unmerged from it stays held. Throws a Fault of 404. */
export async function releasePerson(call: Call): Promise<HandlerResult> {
  const change = definitionCallOf(call)
  await changeOrganization(change, change, async locked => {
    const people = await findPeople(locked, call)
    call.shown.addAll(peopleStackId, people)
    const holds = await readHoldsOf(locked, people, locked.at)
    if (holds.length === 0) refuse('not_found', 'The person is not under a hold.')
    const [statements, changes]: [Promise<unknown>[], DefinitionDiff[]] = [[], []]
    for (const hold of holds) {
      const left = hold.people.filter(id => !people.includes(id))
      if (left.length === 0) {
        statements.push(store(locked, hold, locked.at))
        changes.push(diff(hold.id, 'delete', logged(hold), {}))
      } else {
        statements.push(store(locked, { ...hold, people: left }))
        changes.push(diff(hold.id, 'update', { people: hold.people }, { people: left }))
      }
    }
    return { statements, changes, result: true }
  })
  return { status: 200, data: true }
}

/** Lists the holds that are in force. */
export async function answerHolds({ context, body, shown, signal }: Call<HoldsQuery>): Promise<HandlerResult> {
  const { after = 0, limit = defaultLimit, person = null } = body
  const values = [context.organization_id, new Date().toISOString(), after, limit + 1, person]
  const data = listPage(await context.db.query<HoldShape>(listHoldsSql, values, signal), limit)
  for (const { people } of data.items) shown.addAll(peopleStackId, people)
  return { status: 200, data }
}
