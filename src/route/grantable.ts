import { createValueRefusal, type Detail, Fault, pointer, refuse } from '../values/errors.ts'
import type { Caller } from './caller.ts'
import type { Scope } from './scopes.ts'

/** Throws a Fault of 400 that names each scope of the body that the caller does not have. */
export function requireGrantable(caller: Caller, requested: readonly Scope[]): void {
  const details = requested.flatMap((scope, index): Detail[] =>
    caller.scopes.has(scope)
      ? []
      : [{ path: pointer('scopes', index), message: `${scope} is not a scope of the caller, who cannot grant it` }],
  )
  if (details.length > 0) refuse('invalid_parameter', 'A caller can grant only scopes that it has itself.', { details })
}

/** The role that a caller gives: the requested one, or its own. Throws a Fault of 400 if a caller with a role requests another one. */
export function grantedRole({ role: own }: Caller, requested: string | undefined): string | undefined {
  if (own !== undefined && requested !== undefined && requested !== own)
    throw new Fault(createValueRefusal('/role', `A caller with a role can give only its own, ${JSON.stringify(own)}.`))
  return requested ?? own
}
