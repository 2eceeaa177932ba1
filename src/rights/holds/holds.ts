import { throwNoPerson } from '../../consents/history.ts'
import type { Within } from '../../db/context.ts'
import { type DefinitionCall, differences, throwInvalidField } from '../../organizations/change-definitions.ts'
import { changeOrganization, type DefinitionDiff, type Locked } from '../../organizations/change-organization.ts'
import type { Call } from '../../route/call.ts'
import { personOf } from '../../route/person-addresses.ts'
import type { HandlerResult } from '../../route/result.ts'
import { refuse } from '../../values/errors.ts'
import { findSubject } from '../dossier-sql.ts'
import {
  insertHoldSql,
  isErasedSql,
  listHoldsSql,
  nextHoldIdSql,
  readHeldSql,
  readHoldsOfSql,
  releaseHoldSql,
  updateHoldSql,
} from './holds-sql.ts'
import type { HoldBody, HoldShape, HoldsQuery } from './schema.ts'

type Hold = { id: number; people: string[]; reason: string; until: string | null; actor: string; created_at: string }
type ListedHold = Hold & { leads: HoldShape['people'] }

const defaultLimit = 50

/** Those of the people who are held now, by a hold of their own or of somebody who was merged into them. */
export async function readHeld({ tx, organization_id }: Within, people: readonly string[], at: string) {
  const held = await tx.query<{ id: string }>(readHeldSql, [organization_id, people, at])
  return new Set(held.map(({ id }) => id))
}

/** Throws 409 if one of the people, a person and those who were merged into it, is held. */
export async function throwIfHeld({ tx, organization_id }: Within, people: readonly string[], at: string) {
  const [hold] = await tx.query<Hold>(readHoldsOfSql, [organization_id, people, at])
  if (!hold) return
  const message =
    'The person is under a legal hold, so it is not erased. End the hold first, or send override_hold: true.'
  refuse('invalid_parameter', message, {
    status: 409,
    details: [{ path: '/override_hold', message: `must be true to erase in spite of hold ${hold.id}` }],
  })
}

const toJson = ({ id, leads: people, reason, until, actor, created_at }: ListedHold): HoldShape => ({
  ...{ id, people, reason, until, actor, created_at },
})

/** The person of a path, deleted or not, with those who were merged into it. Throws a Fault of 404, also for an erased one. */
async function findPeople(db: Pick<Within['tx'], 'query'>, { context: { organization_id }, params }: Call<unknown>) {
  const { by, identifier } = personOf(params)
  type Subject = { id: string; merged_ids: string[] }
  const [subject] = await db.query<Subject>(findSubject[by], [organization_id, identifier])
  if (!subject) return throwNoPerson()
  const [{ is_erased } = { is_erased: false }] = await db.query<{ is_erased: boolean }>(isErasedSql, [
    organization_id,
    subject.id,
  ])
  return is_erased ? throwNoPerson() : [subject.id, ...subject.merged_ids]
}

async function readHold(db: Pick<Within['tx'], 'query'>, call: Call<unknown>, people: readonly string[]) {
  const { organization_id } = call.context
  const at = new Date().toISOString()
  const [hold] = await db.query<Hold>(readHoldsOfSql, [organization_id, people, at])
  if (!hold) return undefined
  const [listed] = await db.query<ListedHold>(listHoldsSql, [organization_id, at, hold.id - 1, 1, null])
  return listed && toJson(listed)
}

/** Reads the hold of the person of the path. Throws a Fault of 404. */
export async function answerHold(call: Call): Promise<HandlerResult> {
  const { db } = call.context
  const hold = await readHold(db, call, await findPeople(db, call))
  return { status: 200, data: hold ?? throwNotHeld() }
}

const throwNotHeld = (): never => refuse('not_found', 'The person is not under a hold.')

const logged = ({ people, reason, until }: Pick<Hold, 'people' | 'reason' | 'until'>) => ({ people, reason, until })

const diff = (id: number, operation: DefinitionDiff['operation'], before: object, after: object): DefinitionDiff => ({
  ...{ subject: 'hold', id, operation, before, after },
})

/** Holds the person of the path, or changes its hold. Throws a Fault of 400 or 404. */
export async function holdPerson(call: Call<HoldBody>, change: DefinitionCall): Promise<HandlerResult> {
  const { reason, until = null } = call.body
  if (until !== null && Date.parse(until) <= Date.now()) throwInvalidField('/until', 'must be in the future')
  const held = await changeOrganization(change, change, async ({ tx, organization_id, at }) => {
    const people = await findPeople(tx, call)
    const [current] = await tx.query<Hold>(readHoldsOfSql, [organization_id, people, at])
    const next = { people: [...new Set([...(current?.people ?? []), ...people])], reason, until }
    const result = async () => (await readHold(tx, call, people))!
    if (!current) {
      const [{ id }] = (await tx.query<{ id: number }>(nextHoldIdSql, [organization_id])) as [{ id: number }]
      const values = [organization_id, id, next.people, reason, until, change.actor, at]
      return { statements: [tx.query(insertHoldSql, values)], changes: [diff(id, 'create', {}, next)], result }
    }
    const changed = differences(logged({ ...current, until: current.until && new Date(current.until).toISOString() }), {
      ...next,
      until: until && new Date(until).toISOString(),
    })
    if (!changed) return { changes: [], result }
    const values = [organization_id, current.id, next.people, reason, until]
    const changes = [diff(current.id, 'update', changed.before, changed.after)]
    return { statements: [tx.query(updateHoldSql, values)], changes, result }
  })
  return { status: 200, data: held }
}

/** Ends the holds of the person of the path. Somebody who was separated from it since stays held. Throws a Fault of 404. */
export async function releasePerson(call: Call, change: DefinitionCall): Promise<HandlerResult> {
  await changeOrganization(change, change, async ({ tx, organization_id, at }: Locked) => {
    const people = await findPeople(tx, call)
    const holds = await tx.query<Hold>(readHoldsOfSql, [organization_id, people, at])
    if (holds.length === 0) return throwNotHeld()
    const left = (hold: Hold) => hold.people.filter(id => !people.includes(id))
    return {
      statements: holds.map(hold => tx.query(releaseHoldSql, [organization_id, hold.id, left(hold), at])),
      changes: holds.map(hold =>
        left(hold).length === 0
          ? diff(hold.id, 'delete', logged(hold), {})
          : diff(hold.id, 'update', { people: hold.people }, { people: left(hold) }),
      ),
      result: true,
    }
  })
  return { status: 200, data: true }
}

/** Lists the holds that are in force. */
export async function answerHolds({ context, body, signal }: Call<HoldsQuery>): Promise<HandlerResult> {
  const { after = 0, limit = defaultLimit, person = null } = body
  const values = [context.organization_id, new Date().toISOString(), after, limit + 1, person]
  const rows = await context.db.query<ListedHold>(listHoldsSql, values, signal)
  return { status: 200, data: { items: rows.slice(0, limit).map(toJson), has_more: rows.length > limit } }
}
