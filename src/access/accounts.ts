import { createAccount, inviteAccount, readAccount, updateAccount } from '../auth/accounts.ts'
import type { Account, AccountBody, AccountPatch, InvitedAccount } from '../auth/schema.ts'
import type { ChangeCall } from '../organizations/change-organization.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { parseScopes, scopes } from '../route/scopes.ts'
import { createValueRefusal, Fault } from '../values/errors.ts'

export const authorOf = ({ caller: { subject: actor }, request_id, signal }: Call<unknown>): ChangeCall => ({
  actor,
  request_id,
  signal,
})

/**
 * Throws a Fault of 400 if a role grants more than the caller has. Null grants all scopes and fields. A caller with a
 * role can grant only that role.
 */
async function requireGrantableRole({ context, caller, signal }: Call<unknown>, role: string | null): Promise<void> {
  const { roles } = await currentDefinitions(context, signal)
  const given = role === null ? new Set(scopes) : parseScopes(roles.find(({ key }) => key === role)?.scope ?? '')
  if ((caller.role ?? role) === role && given.isSubsetOf(caller.scopes)) return
  const message = 'A caller can give only what it has itself: the role has scopes or fields that it does not have.'
  throw new Fault(createValueRefusal('/role', message))
}

/** Creates an account with an invitation. Throws a Fault of 400 for a role with more rights than the caller has. */
export async function createApiAccount(call: Call<AccountBody>): Promise<InvitedAccount> {
  const { context, caller, body } = call
  await requireGrantableRole(call, body.role)
  return createAccount(context, authorOf(call), { organizationKey: caller.organization.key, ...body })
}

/** Creates a new invitation. The caller could accept it itself, so it must have all rights of the account. */
export async function inviteApiAccount(call: Call): Promise<InvitedAccount> {
  const { context, caller, params, signal } = call
  const id = params.account_id!
  await requireGrantableRole(call, (await readAccount(context.db, context.organization_id, id)).role)
  return inviteAccount(context, { organizationKey: caller.organization.key, id }, signal)
}

/** Changes an account. Disabling grants no rights. Any other change requires the rights that the account will have. */
export async function updateApiAccount(call: Call<AccountPatch>): Promise<Account> {
  const { context, params, body: change } = call
  const id = params.account_id!
  const { role } = await readAccount(context.db, context.organization_id, id)
  if (change.role !== undefined || change.state !== 'disabled')
    await requireGrantableRole(call, change.role === undefined ? role : change.role)
  return updateAccount(context, authorOf(call), { id, change })
}
