import { Queue } from '../db/coalesce.ts'
import { type Context, perOrganization } from '../db/context.ts'
import {
  cachedDefinitions,
  currentDefinitions,
  type Definitions,
  peopleKey,
  peopleStackId,
  type Role,
} from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller } from '../route/caller.ts'
import { allFields, type FieldAccess, type FieldRights } from '../route/field-rights.ts'
import { parseScopes, type Scope } from '../route/scopes.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'

/** The scopes and fields that a role opens, computed once for each version of the definitions. */
type Opened = Pick<Caller, 'scopes' | 'rights' | 'roleVersion'>
type State = { queue?: Queue<null, Definitions>; definitions?: Definitions; opened: Map<string, Opened> }

const states = perOrganization((): State => ({ opened: new Map() }))

/**
 * The current definitions. Requests that wait at the same time share a read that begins after all of them. With 16
 * clients, a separate read took 250 µs of CPU more for each request.
 */
function definitionsOfNow(context: Context, signal: Signal | undefined): Promise<Definitions> {
  const state = states(context)
  state.queue ??= new Queue({
    run: async (items, shared) => {
      const outcome = await currentDefinitions(context, shared)
      return items.map(() => ({ outcome }))
    },
    itemsLimit: 1_000,
    bytesLimit: 1_000,
    rollsBackOnAbort: false,
  })
  return state.queue.add({ item: null, signal })
}

/**
 * The caller with the scopes that its credential and its role both have, and with the fields of the role. Each request
 * reads the role, so a change counts for the next request in every process. With `cachedFor`, the cached role is used
 * if it allows this scope, and `roleVersion` tells how old it is. Throws a Fault of 403 for a role that does not exist
 * or is archived.
 */
export async function withRole<Given extends Pick<Caller, 'scopes' | 'role'>>(
  caller: Given,
  context: Context,
  { signal, cachedFor }: { signal?: Signal; cachedFor?: Scope | undefined } = {},
): Promise<Given & Pick<Caller, 'rights' | 'roleVersion'>> {
  const { role } = caller
  if (role === undefined) return caller
  const known = cachedFor && openedBy(role, await cachedDefinitions(context, signal), states(context))
  const opened = known?.scopes.has(cachedFor!)
    ? known
    : openedBy(role, await definitionsOfNow(context, signal), states(context))
  return opened
    ? { ...caller, ...opened, scopes: caller.scopes.intersection(opened.scopes) }
    : refuse('forbidden', `The role ${JSON.stringify(role)} of the caller does not exist or is archived.`)
}

/** The scopes and fields that a role opens. Undefined if the role does not exist or is archived. */
function openedBy(key: string, definitions: Definitions, state: State): Opened | undefined {
  if (state.definitions !== definitions) Object.assign(state, { definitions, opened: new Map() })
  const known = state.opened.get(key)
  if (known) return known
  const role = definitions.roles.find(each => each.key === key)
  if (role?.state !== 'active') return undefined
  const rights = role.fields && rightsOf(role.fields, definitions)
  const opened = { scopes: parseScopes(role.scope), roleVersion: definitions.version, ...(rights && { rights }) }
  state.opened.set(key, opened)
  return opened
}

/** Throws a Fault of 400 unless the organization has the role, and it is active. */
export async function requireRole(context: Context, key: string, signal?: Signal): Promise<void> {
  const { roles } = await currentDefinitions(context, signal)
  if (roles.some(role => role.key === key && role.state === 'active')) return
  throw new Fault(createValueRefusal('/role', `There is no active role ${JSON.stringify(key)}.`))
}

function rightsOf(fields: NonNullable<Role['fields']>, { stacks }: Definitions): FieldRights {
  const byOwner = new Map<string, FieldAccess>()
  for (const [owner, { read, write }] of Object.entries(fields))
    byOwner.set(owner, { read: new Set(read), write: new Set(write) })
  const owners = [{ id: peopleStackId, key: peopleKey }, ...stacks]
  const byStack = new Map<number, FieldAccess>()
  for (const { id, key } of owners) if (byOwner.has(key)) byStack.set(id, byOwner.get(key)!)
  const isWhole = owners.every(({ key }) => {
    const access = byOwner.get(key)
    return access?.read.has(allFields) && access.write.has(allFields)
  })
  return { byStack, byOwner, fields, key: JSON.stringify(fields), isWhole }
}
