import {
  type Account,
  createAccount,
  type InvitedAccount,
  inviteAccount,
  listAccounts,
  readAccount,
  removeAccount,
  updateAccount,
} from '../auth/accounts.ts'
import type { ChangeCall } from '../organizations/change-organization.ts'
import type { Call } from '../route/call.ts'
import type { AccountBody, AccountPatch, AccountShape, InvitedAccountShape } from './account-schema.ts'
import { requireGrantableRole } from './grantable-scopes.ts'

/** The page on which a person accepts an invitation. The code is in the fragment, which browsers send to no server. */
const invitationPath = (code: string) => `/console/invitation#code=${code}`

/** An account as a read shows it. */
export const accountToJson = ({ id, name, role, disabled_at, has_password, ...account }: Account): AccountShape => ({
  id,
  name,
  role,
  state: disabled_at !== null ? 'disabled' : has_password ? 'active' : 'invited',
  maker: account.maker,
  created_at: account.created_at,
  last_sign_in_at: account.last_sign_in_at,
  invitation_expires_at: account.invitation_expires_at,
})

export const invitedToJson = ({ code, ...account }: InvitedAccount): InvitedAccountShape => ({
  ...accountToJson(account),
  invitation_path: invitationPath(code),
})

export const listApiAccounts = async ({ context, signal }: Call): Promise<AccountShape[]> =>
  (await listAccounts(context, signal)).map(accountToJson)

const authorOf = ({ caller: { subject: actor }, request_id, signal }: Call<unknown>): ChangeCall => ({
  actor,
  request_id,
  signal,
})

/** Makes an account with an invitation. Throws a Fault of 400 for a role with more than the caller has. */
export async function createApiAccount(call: Call<AccountBody>): Promise<InvitedAccountShape> {
  const { context, caller, body } = call
  requireGrantableRole(caller, body.role)
  return invitedToJson(
    await createAccount(context, authorOf(call), { organizationKey: caller.organization.key, ...body }),
  )
}

/** Makes a new invitation. The caller can accept it itself, so it must have all that the account has. */
export async function inviteApiAccount({ context, caller, params, signal }: Call): Promise<InvitedAccountShape> {
  const id = params.account_id!
  requireGrantableRole(caller, (await readAccount(context.db, context.organization_id, id)).role)
  return invitedToJson(await inviteAccount(context, { organizationKey: caller.organization.key, id }, signal))
}

/** Changes an account. Disabling it gives nothing to anybody; all else needs what the account will have. */
export async function updateApiAccount(call: Call<AccountPatch>): Promise<AccountShape> {
  const { context, caller, params, body: change } = call
  const id = params.account_id!
  const { role } = await readAccount(context.db, context.organization_id, id)
  if (change.role !== undefined || change.state !== 'disabled')
    requireGrantableRole(caller, change.role === undefined ? role : change.role)
  return accountToJson(await updateAccount(context, authorOf(call), { id, change }))
}

export async function removeApiAccount(call: Call): Promise<true> {
  await removeAccount(call.context, authorOf(call), call.params.account_id!)
  return true
}
