import type { Limits } from '../config.ts'
import type { Database, Statement } from '../db/db.ts'
import { OutcomeUnknown } from '../db/pg-errors.ts'
import { fail } from '../errors.ts'
import type { Call } from '../http/pipeline/route.ts'
import type { Signal } from '../signal.ts'
import {
  buildDefinitions,
  currentDefinitions,
  type DefinitionRows,
  type Definitions,
  reloadDefinitions,
} from './definitions.ts'
import { appendDefinitionChangeSql, lockHeadSql, readDefinitionsSql } from './definitions-sql.ts'

/** One definition that a write makes or changes: the statement that stores it, and its entry in the change log. */
export type DefinitionChange = {
  subject: 'stack' | 'attribute' | 'consent_type'
  id: number
  operation: 'create' | 'update'
  before: Record<string, unknown>
  after: Record<string, unknown>
  store: Statement
  /** The values of `store` from $2 on; $1 is the organization. */
  values: unknown[]
}

const limitNames = { stacks: 'stacks', attributes: 'attributes', consent_types: 'consentTypes' } as const
type DefinitionLimits = Pick<Limits, (typeof limitNames)[keyof typeof limitNames]>

/** Who changes a definition, for the change log, and how many definitions an organization may have. */
export type Author = {
  db: Database
  organization_id: number
  actor: string
  request_id: string
  limits: DefinitionLimits
  signal?: Signal
}

export function authorOf({ db, caller, request_id, limits, signal }: Call): Author {
  return { db, organization_id: caller.organization.id, actor: caller.subject, request_id, limits, signal }
}

/**
 * Changes definitions one at a time for each organization: the head is locked first, so that what `decide` sees still
 * stands when it is stored. Every change moves the schema version, and writes decided on an older one are decided
 * again. `decide` is given RFC 3339 `at`; no changes leave everything as it is. Answers the definitions afterwards.
 */
export async function changeDefinitions(
  { db, organization_id, actor, request_id, signal }: Author,
  decide: (definitions: Definitions, at: string) => DefinitionChange[],
): Promise<Definitions> {
  const changed = await db.transaction(
    async tx => {
      await tx.query(lockHeadSql, [organization_id])
      const [rows] = await tx.query<DefinitionRows>(readDefinitionsSql, [organization_id])
      const at = new Date().toISOString()
      const changes = decide(buildDefinitions(organization_id, rows!), at)
      for (const { store, values, subject, id, operation, before, after } of changes) {
        await tx.query(store, [organization_id, ...values])
        const logged = [at, subject, id, operation, JSON.stringify(before), JSON.stringify(after), actor, request_id]
        await tx.query(appendDefinitionChangeSql, [organization_id, ...logged])
      }
      return changes.length > 0
    },
    { signal },
  )
  if (changed)
    return reloadDefinitions(db, organization_id, signal).catch(cause => {
      // Not the signal's own error: that one says that nothing was done.
      throw new OutcomeUnknown('the definitions were changed, and could not be read back', { cause })
    })
  return currentDefinitions(db, organization_id, signal)
}

/** The fields of a patch that differ from what stands, before and after; null where nothing does. */
export function differences<T extends object>(
  standing: T,
  patch: Partial<T>,
): { before: Partial<T>; after: Partial<T> } | null {
  const changed = (Object.keys(patch) as (keyof T)[]).filter(
    key => patch[key] !== undefined && JSON.stringify(patch[key]) !== JSON.stringify(standing[key]),
  )
  if (changed.length === 0) return null
  const pick = (from: Partial<T>) => Object.fromEntries(changed.map(key => [key, from[key]])) as Partial<T>
  return { before: pick(standing), after: pick(patch) }
}

/** The id a new definition takes: one past the highest, safe under the head's lock. */
export const nextId = (definitions: readonly { id: number }[]): number =>
  definitions.reduce((highest, { id }) => Math.max(highest, id), 0) + 1

/**
 * Refuses one definition more than an organization may have, with 400. To be called where definitions change, so that
 * creates that come at the same time cannot pass the limit together.
 */
export function refuseMore(kind: keyof typeof limitNames, standing: Definitions, limits: DefinitionLimits): void {
  const max = limits[limitNames[kind]]
  if (standing[kind].length < max) return
  const [noun, setting] = [kind.replace('_', ' '), `KITH_LIMIT_${kind.toUpperCase()}`]
  const message = `would be one more than the ${max} ${noun} that an organization may have, archived ones included`
  fail('invalid_parameter', `The organization has as many ${noun} as it may have (${setting}: ${max}).`, {
    details: [{ path: '', message }],
  })
}

/** Refuses the value at `path` with 400. */
export function refuseField(path: string, message: string): never {
  return fail('invalid_parameter', 'The request breaks a rule.', { details: [{ path, message }] })
}

/** Refuses a key that is taken with 409. */
export function refuseTaken(message: string): never {
  return fail('duplicate_entry', 'The key is taken.', { details: [{ path: '/key', message }] })
}
