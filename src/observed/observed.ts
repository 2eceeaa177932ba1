import type { Database } from '../db/db.ts'
import { beginFollower } from '../followers/begin-follower.ts'
import { throwInvalidField } from '../organizations/change-definitions.ts'
import { currentDefinitions, type Definitions, peopleKey, peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../signal.ts'
import { maxKeys } from './follow.ts'
import type { ObservedType } from './schema.ts'
import { followerName, listObservedSql } from './sql.ts'

/** A key that was not declared when values were written under it. Times are RFC 3339 in UTC. */
export type ObservedKey = {
  key: string
  types: Record<ObservedType, number>
  count: number
  first_seen: string
  last_seen: string
  declarable: boolean
}

type ObservedRow = { sequence: number; truncated: boolean; items: Omit<ObservedKey, 'declarable'>[] }

/** The keys that definitions may have, as the schema of a new attribute states it. */
export const declarableKey = /^[a-z][a-z0-9_]{0,62}$/

/** Why a key cannot be the key of an attribute. Undefined if it can. */
export function undeclarable(key: string): string | undefined {
  if (declarableKey.test(key)) return undefined
  const reason = !/^[a-z]/.test(key)
    ? 'it does not begin with a letter from a to z'
    : /^[a-z0-9_]*$/.test(key)
      ? 'it is longer than 63 characters'
      : 'it has other characters than a to z, 0 to 9 and _'
  return `cannot be the key of an attribute: ${reason}. Write the values under another key.`
}

/** The stack that an owner names. Throws a Fault of 400 for the value at `/owner`. */
export function stackIdOf({ stacks }: Definitions, owner: string): number {
  if (owner === peopleKey) return peopleStackId
  return (
    stacks.find(({ key }) => key === owner)?.id ?? throwInvalidField('/owner', 'must be `people` or the key of a stack')
  )
}

/** Lists the keys that values of an owner's entities were written under and that are not declared now. */
export async function listObserved(db: Database, organization_id: number, owner: string, signal: Signal) {
  const stack_id = stackIdOf(await currentDefinitions(db, organization_id, signal), owner)
  await beginFollower(db, organization_id, followerName, signal)
  const values = [organization_id, stack_id, followerName, maxKeys]
  const [{ sequence, truncated, items }] = (await db.query<ObservedRow>(listObservedSql, values, signal)) as [
    ObservedRow,
  ]
  const shown = items.map((item): ObservedKey => ({ ...item, declarable: undeclarable(item.key) === undefined }))
  return { items: shown, sequence, truncated }
}
