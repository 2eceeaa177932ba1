import type { Caller } from '../route/caller.ts'
import type { Scope } from '../route/scopes.ts'
import { type Detail, pointer, refuse } from '../values/errors.ts'

/** Throws a Fault of 400 that names each scope of the body that the caller does not have. */
export function requireGrantable(caller: Caller, requested: readonly Scope[]): void {
  const details = requested.flatMap((scope, index): Detail[] =>
    caller.scopes.has(scope)
      ? []
      : [{ path: pointer('scopes', index), message: `${scope} is not a scope of the caller, who cannot grant it` }],
  )
  if (details.length > 0) refuse('invalid_parameter', 'A caller can grant only scopes that it has itself.', { details })
}
