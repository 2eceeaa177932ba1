import type { Context, Within } from '../db/context.ts'
import type { Transaction } from '../db/db.ts'
import type { Limits } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import type { HandlerResult } from '../route/result.ts'
import type { Route, route } from '../route/route.ts'
import { refuse, throwValueRefusal } from '../values/errors.ts'
import { type ChangeCall, changeOrganization, type DefinitionDiff } from './change-organization.ts'
import { definitionDryRun } from './definition-schema.ts'
import { type Definitions, definitionsKeeper, readDefinitions } from './definitions.ts'

/**
 * A created or changed definition, and its entry in the change log. `store` stores it with the version of the
 * definitions that the change makes. If one statement stores several changes together, only the first has `store`.
 */
export type DefinitionChange = DefinitionDiff & {
  subject: 'stack' | 'attribute' | 'consent_type' | 'segment' | 'role'
  store?(version: number, within: Within): Promise<unknown>
}

const limitNames = { stacks: 'stacks', attributes: 'attributes', consent_types: 'consentTypes' } as const
type DefinitionLimits = Pick<Limits, (typeof limitNames)[keyof typeof limitNames]>

/** A request that changes definitions, settings or webhooks. */
export type DefinitionCall = Context & ChangeCall & { limits: DefinitionLimits }

export function definitionCallOf({ context, caller, ...call }: Call<unknown>): DefinitionCall {
  const { request_id, limits, signal, isDryRun, written } = call
  return { ...context, actor: caller.subject, request_id, limits, signal, isDryRun, written }
}

/** Defines the row of a write whose dry run responds with the entries that the log would get. */
export function definitionWrite<Body>(row: Parameters<typeof route<Body>>[0]): Route {
  const handle = async (call: Call<Body>): Promise<HandlerResult> => {
    const result = await row.handle(call)
    if (!call.isDryRun) return result
    const logged = (call.written.changes ?? []) as DefinitionDiff[]
    const changes = logged.map(({ subject, id, operation, before, after }) => ({
      subject,
      id: operation === 'create' ? null : id,
      operation,
      before,
      after,
    }))
    return { status: 200, data: { dry_run: true, changes } }
  }
  return { ...row, dryRun: definitionDryRun, handle } as Route
}

/**
 * Changes the definitions of an organization. `decide` receives the current definitions, the time as RFC 3339 in `at`,
 * and reads in the transaction. Every change increments their version. Without changes, nothing is stored. Returns the
 * definitions after the changes, even in a dry run. Throws the error of `decide`.
 */
export async function changeDefinitions(
  call: DefinitionCall,
  decide: (definitions: Definitions, at: string, tx: Transaction) => DefinitionChange[] | Promise<DefinitionChange[]>,
): Promise<Definitions> {
  const keep = definitionsKeeper(call)
  const definitions = await changeOrganization<Definitions>(
    call,
    call,
    async ({ tx, organization_id, definitions: current, at }) => {
      const changes = await decide(current, at, tx)
      if (changes.length === 0) return { changes, result: current }
      const statements = changes.flatMap(
        ({ store }, index) => store?.(current.version + 1 + index, { tx, organization_id }) ?? [],
      )
      const result = () => readDefinitions({ db: tx, organization_id }, current)
      return { statements, changes, changesDefinitions: true, result }
    },
  )
  return call.isDryRun ? definitions : keep(definitions)
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
 * Throws 400 if the organization would exceed the maximum number of definitions of a kind. The head must be locked,
 * because concurrent creates could otherwise exceed the limit together.
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
  throwValueRefusal('', message, `The organization has reached its limit of ${noun} (${setting}: ${max}).`)
}

/**
 * Throws 400 because an organization would exceed the limit of `max`. `summary` is a complete sentence, which the
 * console translates.
 */
export function throwTooMany(summary: string, noun: string, max: number): never {
  const message = `exceeds the limit of ${max} ${noun} per organization`
  return throwValueRefusal('', message, summary)
}

/** Throws 409 because the key is taken. */
export function throwKeyTaken(message: string): never {
  return refuse('duplicate_entry', 'The key is taken.', { details: [{ path: '/key', message }] })
}
