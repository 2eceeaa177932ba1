import { randomUUID } from 'node:crypto'
import type { Context, Within } from '../db/context.ts'
import type { Database, Transaction } from '../db/db.ts'
import { type ChangeCall, changeOrganization } from '../organizations/change-organization.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../process/signal.ts'
import { scopes } from '../route/scopes.ts'
import { createSecret, digest, organizationKeyOf, type StartedSession, startSession } from '../sessions/sessions.ts'
import { lookAlikeOf, requireActorName, requireNoClientId } from '../values/actor-names.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'
import {
  acceptInvitationSql,
  changePasswordSql,
  deleteAccountSql,
  endAccountSessionsSql,
  insertAccountSql,
  inviteAccountSql,
  listAccountsSql,
  readAccountSql,
  readInvitationSql,
  readPasswordByNameSql,
  readPasswordSql,
  signInAccountSql,
  updateAccountSql,
} from './accounts-sql.ts'
import { requireRole } from './caller-role.ts'
import { requireFreeName } from './issued-tokens.ts'
import { hashPassword, passwordProblem, type Turn, verifyPassword } from './passwords.ts'
import type { Account, AccountBody, AccountPatch, InvitedAccount } from './schema.ts'

type Organization = { id: number; key: string }

/** Three days, which cover a weekend. */
const invitationSeconds = 259_200
const maxAccounts = 1_000

/** The accounts of an organization, newest first. */
export const listAccounts = ({ db, organization_id }: Context, signal?: Signal): Promise<Account[]> =>
  db.query<Account>(listAccountsSql, [organization_id, maxAccounts], signal)

/** Reads an account. Throws a Fault of 404. */
export async function readAccount(
  db: Pick<Database | Transaction, 'query'>,
  organization_id: number,
  id: string,
): Promise<Account> {
  const [account] = await db.query<Account>(readAccountSql, [organization_id, id])
  return account ?? throwNoAccount()
}

/**
 * Creates an account with an invitation. Throws a Fault of 400 for a role that does not exist, and for a name that
 * cannot name an actor, or that equals or resembles the name of another account, client, session or token. The name may
 * be the author's, who creates an account for the same person.
 */
export async function createAccount(
  context: Context,
  call: ChangeCall,
  { organizationKey, name, role }: AccountBody & { organizationKey: string },
): Promise<InvitedAccount> {
  // The sign-in ignores case. A name in the form of a client_id could be taken for that client.
  requireActorName(name)
  requireNoClientId(name)
  if (role !== null) await requireRole(context, role, call.signal)
  const code = createSecret(organizationKey)
  // The lock of the organization keeps other callers from taking the name meanwhile.
  return changeOrganization(context, call, async ({ tx, organization_id }) => {
    const isOwn = ({ account_id }: { account_id: string | null }) => account_id === null && name === call.actor
    await requireFreeName({ tx, organization_id }, name, other => other.name === name && isOwn(other))
    const accounts = await tx.query(listAccountsSql, [organization_id, maxAccounts])
    if (accounts.length === maxAccounts)
      refuse('invalid_parameter', `An organization has at most ${maxAccounts} accounts. Remove those that nobody uses.`)
    const invitation = [digest(code), invitationSeconds]
    const values = [organization_id, randomUUID(), name, lookAlikeOf(name), role, call.actor, ...invitation]
    const [account] = await tx.query<Account>(insertAccountSql, values)
    return { changes: [], result: invited(account!, code) }
  })
}

/**
 * The account with the URL of the page for accepting its invitation. The code is in the fragment, which browsers send
 * to no server.
 */
const invited = (account: Account, code: string): InvitedAccount => ({
  ...account,
  invitation_path: `/console/invitation#code=${code}`,
})

/**
 * Replaces the invitation of an account. The password stays valid until a person accepts the invitation. Throws a Fault
 * of 404.
 */
export async function inviteAccount(
  { db, organization_id }: Context,
  { organizationKey, id }: { organizationKey: string; id: string },
  signal?: Signal,
): Promise<InvitedAccount> {
  const code = createSecret(organizationKey)
  const values = [organization_id, id, digest(code), invitationSeconds]
  const [account] = await db.query<Account>(inviteAccountSql, values, signal)
  return invited(account ?? throwNoAccount(), code)
}

/**
 * Changes an account. Another role, or disabling it, ends its sessions and its invitation, because they were granted
 * for its former rights. Throws a Fault: 404 if the account does not exist, 400 for a role that does not exist.
 */
export async function updateAccount(
  context: Context,
  call: ChangeCall,
  { id, change }: { id: string; change: AccountPatch },
): Promise<Account> {
  if (change.role) await requireRole(context, change.role, call.signal)
  return changeOrganization(context, call, async ({ tx, organization_id, at }) => {
    const before = await readAccount(tx, organization_id, id)
    const { role = before.role, state = before.state } = change
    const isDisabled = state === 'disabled'
    const isSame = role === before.role && !isDisabled
    const values = [organization_id, id, role, isDisabled ? at : null, isSame]
    const [account] = await tx.query<Account>(updateAccountSql, values)
    if (!isSame) await endSessions({ tx, organization_id }, id)
    return { changes: [], result: account! }
  })
}

/** Deletes an account and ends its sessions. Throws a Fault of 404. */
export async function removeAccount(context: Context, call: ChangeCall, id: string): Promise<void> {
  await changeOrganization(context, call, async ({ tx, organization_id }) => {
    const removed = await tx.query(deleteAccountSql, [organization_id, id])
    if (removed.length === 0) throwNoAccount()
    await endSessions({ tx, organization_id }, id)
    return { changes: [], result: undefined }
  })
}

/**
 * Ends the sessions of an account, except for `kept`, and the tokens made in them. Other processes refuse them within
 * seconds.
 */
const endSessions = ({ tx, organization_id }: Within, account_id: string, kept: string | null = null) =>
  tx.query(endAccountSessionsSql, [organization_id, account_id, kept])

type StoredPassword = { id: string; name: string; password_hash: string | null }

/**
 * Starts a session for a name and its password. Undefined if the password is wrong or the account does not exist. Both
 * cases take the same time.
 */
export async function startSessionWithPassword(
  db: Database,
  { organizationKey, name, password }: { organizationKey: string; name: string; password: string },
  turn: Turn,
): Promise<StartedSession | undefined> {
  const { signal } = turn
  const organization = isOrganizationKey(organizationKey)
    ? await findOrganization(db, organizationKey, signal)
    : undefined
  const values = [organization?.id ?? 0, lookAlikeOf(name)]
  const [account] = await db.query<StoredPassword>(readPasswordByNameSql, values, signal)
  const isRight = await verifyPassword(password, account?.password_hash, turn)
  if (!organization || !account || !isRight) return undefined
  const ids = [organization.id, account.id, account.password_hash]
  return db.transaction(
    async tx => {
      const [current] = await tx.query<SignedIn>(signInAccountSql, ids)
      return current && startAccountSession(tx, organization, current)
    },
    { signal },
  )
}

type SignedIn = Pick<Account, 'id' | 'name' | 'role'>

function startAccountSession(
  tx: Transaction,
  organization: Organization,
  { id, name, role }: SignedIn,
): Promise<StartedSession> {
  return startSession(tx, organization, { name, role, scope: scopes.join(' '), method: 'account', account_id: id })
}

export type Invitation = { id: string; name: string; expires_at: string; organization: Organization }

/** The invitation with this code. Undefined if it is unknown, expired or accepted. */
export async function findInvitation(db: Database, code: string, signal?: Signal): Promise<Invitation | undefined> {
  const organizationKey = organizationKeyOf(code)
  const organization = organizationKey !== undefined && (await findOrganization(db, organizationKey, signal))
  if (!organization) return undefined
  const values = [organization.id, digest(code)]
  const [invitation] = await db.query<Omit<Invitation, 'organization'>>(readInvitationSql, values, signal)
  return invitation && { ...invitation, organization }
}

/**
 * Accepts an invitation: stores the password, ends the sessions of the account and starts one. The code cannot be used
 * again. Undefined if the invitation is no longer open. Throws a Fault of 400 for an unacceptable password.
 */
export async function acceptInvitation(
  db: Database,
  { invitation, code, password }: { invitation: Invitation; code: string; password: string },
  turn: Turn,
): Promise<StartedSession | undefined> {
  const { organization, name } = invitation
  requirePassword('/password', password, name)
  const values = [organization.id, digest(code), await hashPassword(password, turn)]
  return db.transaction(
    async tx => {
      const [account] = await tx.query<SignedIn>(acceptInvitationSql, values)
      if (!account) return undefined
      await endSessions({ tx, organization_id: organization.id }, account.id)
      return startAccountSession(tx, organization, account)
    },
    { signal: turn.signal },
  )
}

/**
 * Changes the password of an account, and ends its other sessions. False if the current password is wrong. Throws a
 * Fault of 400 for an unacceptable password.
 */
export async function changePassword(
  { db, organization_id }: Context,
  { account_id, session_id }: { account_id: string; session_id: string },
  { current_password, new_password }: { current_password: string; new_password: string },
  turn: Turn,
): Promise<boolean> {
  const { signal } = turn
  const [account] = await db.query<StoredPassword>(readPasswordSql, [organization_id, account_id], signal)
  if (!(await verifyPassword(current_password, account?.password_hash, turn))) return false
  requirePassword('/new_password', new_password, account!.name)
  const hash = await hashPassword(new_password, turn)
  return db.transaction(
    async tx => {
      const values = [organization_id, account_id, account!.password_hash, hash]
      const changed = await tx.query(changePasswordSql, values)
      if (changed.length > 0) await endSessions({ tx, organization_id }, account_id, session_id)
      return changed.length > 0
    },
    { signal },
  )
}

function requirePassword(path: string, password: string, name: string): void {
  const problem = passwordProblem(password, name)
  if (problem !== undefined) throw new Fault(createValueRefusal(path, problem))
}

function throwNoAccount(): never {
  refuse('not_found', 'There is no account with this id.')
}
