import { announceCommit } from '../changes/commit-events.ts'
import type { Limits } from '../config.ts'
import { awaitPipelined, type Database, type Transaction } from '../db/db.ts'
import { refuse } from '../errors.ts'
import type { Call, Written } from '../http/pipeline/route.ts'
import type { Signal } from '../signal.ts'
import { appendChanges } from './append-changes.ts'
import { type DefinitionDiff, DefinitionDryRun } from './definition-dry-run.ts'
import { cachedDefinitions, type Definitions, definitionsKeeper, readDefinitions } from './definitions.ts'
import { lockHead, standingDefinitions } from './head.ts'

/**
 * A created or changed definition, and its entry in the change log. `store` stores it with the version of the definitions that the change
 * makes. Changes that one statement stores together have one `store`, that of the first.
 */
export type DefinitionChange = DefinitionDiff & {
  subject: 'stack' | 'attribute' | 'consent_type' | 'segment'
  store?(version: number, tx: Transaction, organization_id: number): Promise<unknown>
}

const limitNames = { stacks: 'stacks', attributes: 'attributes', consent_types: 'consentTypes' } as const
type DefinitionLimits = Pick<Limits, (typeof limitNames)[keyof typeof limitNames]>

/** The context of a change to definitions: the database, the author for the change log, and the limits. */
export type Author = {
  db: Database
  organization_id: number
  actor: string
  request_id: string
  limits: DefinitionLimits
  signal?: Signal
  /** Stores nothing, and throws {@link DefinitionDryRun} with the changes instead. */
  isDryRun?: boolean
  /** Receives the number of the last change. */
  written?: Written
}

export function authorOf({ db, caller, request_id, limits, signal, isDryRun, written }: Call): Author {
  const { organization, subject: actor } = caller
  return { db, organization_id: organization.id, actor, request_id, limits, signal, isDryRun, written }
}

/**
 * Changes the definitions of an organization, one transaction at a time. The head is locked first, so the definitions
 * that `decide` receives cannot change before its result is stored. Every change increments the schema version. `decide`
 * receives the time as RFC 3339 in `at`, and reads in the transaction. Without changes nothing is stored. Returns the definitions after
 * the changes. Throws what `decide` throws.
 */
export async function changeDefinitions(
  { db, organization_id, actor, request_id, signal, isDryRun, written }: Author,
  decide: (definitions: Definitions, at: string, tx: Transaction) => DefinitionChange[] | Promise<DefinitionChange[]>,
): Promise<Definitions> {
  const keep = definitionsKeeper(db)
  const cached = await cachedDefinitions(db, organization_id, signal)
  const { definitions, hasChanges, sequence } = await db.transaction(
    async tx => {
      const head = await lockHead(tx, organization_id)
      const at = new Date().toISOString()
      const current = await standingDefinitions(tx, head, cached)
      const changes = await decide(current, at, tx)
      if (isDryRun) throw new DefinitionDryRun(changes)
      const sequence = head.sequence + changes.length
      if (changes.length === 0) return { definitions: current, hasChanges: false, sequence }
      const storing = changes.flatMap(
        ({ store }, index) => store?.(current.version + 1 + index, tx, organization_id) ?? [],
      )
      const context = { organization_id, at, actor, request_id, changesDefinitions: true }
      const appending = appendChanges(tx, context, changes)
      const reading = readDefinitions(tx, organization_id, current)
      await awaitPipelined([...storing, appending, reading])
      return { definitions: await reading, hasChanges: true, sequence }
    },
    { signal },
  )
  if (hasChanges) announceCommit(db, organization_id)
  if (written) written.sequence = sequence
  return keep(definitions)
}

/** The fields of a patch that differ from the current values, before and after. Null if no field differs. */
export function differences<T extends object>(
  current: T,
  patch: Partial<T>,
): { before: Partial<T>; after: Partial<T> } | null {
  const changed = (Object.keys(patch) as (keyof T)[]).filter(
    key => patch[key] !== undefined && JSON.stringify(patch[key]) !== JSON.stringify(current[key]),
  )
  if (changed.length === 0) return null
  const pick = (from: Partial<T>) => Object.fromEntries(changed.map(key => [key, from[key]])) as Partial<T>
  return { before: pick(current), after: pick(patch) }
}

/** The id of a new definition: the highest id plus one. The head must be locked. */
export const nextId = (definitions: readonly { id: number }[]): number =>
  definitions.reduce((highest, { id }) => Math.max(highest, id), 0) + 1

/**
 * Throws 400 if the organization would have more than the maximum number of definitions of a kind. Must be called while the head
 * is locked; otherwise concurrent creates could exceed the limit together.
 */
export function throwIfLimitReached(
  kind: keyof typeof limitNames,
  current: Definitions,
  limits: DefinitionLimits,
  added = 1,
): void {
  const max = limits[limitNames[kind]]
  if (current[kind].length + added <= max) return
  const [noun, setting] = [kind.replace('_', ' '), `KITH_LIMIT_${kind.toUpperCase()}`]
  const message = `exceeds the limit of ${max} ${noun} per organization, archived ones included`
  refuse('invalid_parameter', `The organization has reached its limit of ${noun} (${setting}: ${max}).`, {
    details: [{ path: '', message }],
  })
}

/** Throws 400 for the value at `path`. */
export function throwInvalidField(path: string, message: string): never {
  return refuse('invalid_parameter', 'The request breaks a rule.', { details: [{ path, message }] })
}

/** Throws 409 for a key that is taken. */
export function throwKeyTaken(message: string): never {
  return refuse('duplicate_entry', 'The key is taken.', { details: [{ path: '/key', message }] })
}
