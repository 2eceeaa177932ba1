import { createValueRefusal, type Detail, Fault, pointer, refuse } from '../values/errors.ts'
import type { FieldRights } from './field-rights.ts'
import type { Scope } from './scopes.ts'

/** The authenticated caller of a request: its organization, the subject that the change log names, and its scopes. */
export type Caller = Readonly<{
  organization: Readonly<{ id: number; key: string }>
  subject: string
  scopes: ReadonlySet<Scope>
  /** Distinguishes callers with the same subject. It owns the stored responses of requests with an Idempotency-Key. */
  identity: string
  credential: Credential
  /** The key of the caller's role, if it has one. */
  role?: string | undefined
  /** The fields that the caller's role may read and write. Undefined means all. */
  rights?: FieldRights
  /** The version of the definitions that the role comes from. */
  roleVersion?: number
}>

/**
 * The client, session or listed token behind a caller's token or cookie, and the end of its validity as Unix time in
 * milliseconds. Rate limits count under `budget`. The tokens of a caller share the caller's budget.
 */
export type Credential = Readonly<{
  client_id: string | undefined
  session_id: string | undefined
  token_id: string | undefined
  budget: string
  expiresAtMs: number
}>

/** Throws a Fault of 400 that names each scope of the body that the caller does not have. */
export function requireGrantable(caller: Caller, requested: readonly Scope[]): void {
  const details = requested.flatMap((scope, index): Detail[] =>
    caller.scopes.has(scope)
      ? []
      : [{ path: pointer('scopes', index), message: `${scope} is not a scope of the caller, who cannot grant it` }],
  )
  if (details.length > 0) refuse('invalid_parameter', 'A caller can grant only scopes that it has itself.', { details })
}

/**
 * Returns the role that a caller gives to others: the requested one, or its own. Throws a Fault of 400 if a caller with
 * a role requests another one.
 */
export function grantedRole({ role: own }: Caller, requested: string | undefined): string | undefined {
  if (own !== undefined && requested !== undefined && requested !== own)
    throw new Fault(createValueRefusal('/role', `A caller with a role can give only its own, ${JSON.stringify(own)}.`))
  return requested ?? own
}
