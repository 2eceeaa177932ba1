import type { Caller } from '../route/caller.ts'
import { type Scope, scopes } from '../route/scopes.ts'
import { createValueRefusal, type Detail, Fault, pointer, refuse } from '../values/errors.ts'

/** Throws a Fault of 400 that names each scope of the body that the caller does not have. */
export function requireGrantable(caller: Caller, requested: readonly Scope[]): void {
  const details = requested.flatMap((scope, index): Detail[] =>
    caller.scopes.has(scope)
      ? []
      : [{ path: pointer('scopes', index), message: `${scope} is not a scope of the caller, who cannot grant it` }],
  )
  if (details.length > 0) refuse('invalid_parameter', 'A caller can grant only scopes that it has itself.', { details })
}

/** Throws a Fault of 400 if a role gives more than the caller has. Null gives all scopes. */
export function requireGrantableRole(caller: Caller, role: string | null): void {
  if (role !== null || scopes.every(scope => caller.scopes.has(scope))) return
  throw new Fault(createValueRefusal('/role', 'A caller can grant only what it has itself, and has not all scopes.'))
}
