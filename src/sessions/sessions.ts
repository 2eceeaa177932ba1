import { hash, randomBytes, randomUUID } from 'node:crypto'
import type { Context } from '../db/context.ts'
import type { Database, Transaction } from '../db/db.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../process/signal.ts'
import { parseScopes, requireScopes, type Scope } from '../route/scopes.ts'
import { lookAlikeOf, requireActorName } from '../values/actor-names.ts'
import { refuse } from '../values/errors.ts'
import type { ListedSession } from './schema.ts'
import {
  deleteExpiredCodesSql,
  deleteExpiredSessionsSql,
  findAccountNameSql,
  insertSessionSql,
  insertSignInCodeSql,
  listSessionsSql,
  readSessionSql,
  revokeSessionSql,
  useSignInCodeSql,
} from './sql.ts'

/** The lifetime of a session, a working day. */
export const sessionSeconds = 43_200
/** The lifetime of a sign-in code. The operator opens its link immediately, on the machine that printed it. */
export const codeSeconds = 60
const maxListed = 1_000

/**
 * How a session began: with a one-time link, with a client's credentials, at the outside issuer, or with a password.
 */
export type SignInMethod = 'code' | 'client' | 'issuer' | 'account'

/**
 * The person or client that signs in: the name that the change log shows as the actor, the scopes, and the role, if
 * any.
 */
export type Identity = {
  name: string
  scope: string
  method: SignInMethod
  client_id?: string
  account_id?: string
  role?: string | null | undefined
}

const maxNameCharacters = 255

/**
 * The identity of a client's session. Its name ends with the client_id, because several clients may share a name, and
 * the change log must distinguish them.
 */
export function clientIdentity(
  { name, scope, role }: { name: string; scope: string; role: string | null },
  client_id: string,
): Identity {
  const shown = name === '' ? client_id : withSuffix(name, ` (${client_id})`)
  return { name: shown, scope, role, method: 'client', client_id }
}

/** Shortens a name so that the suffix fits at its end. */
const withSuffix = (name: string, suffix: string) =>
  [...name].slice(0, maxNameCharacters - suffix.length).join('') + suffix

/** A session. `expires_at` is RFC 3339 in UTC. */
export type Session = {
  id: string
  name: string
  scopes: ReadonlySet<Scope>
  role: string | null
  method: SignInMethod
  account_id: string | null
  expires_at: string
}

type SessionRow = Omit<Session, 'scopes'> & { scope: string }

/** An organization's key, a dot, and 256 random bits. */
const secretPattern = /^([a-z][a-z0-9_-]{0,62})\.[\w-]{43}$/

/** The organization key at the beginning of a cookie, a code or an invitation. Undefined for a malformed one. */
export const organizationKeyOf = (secret: string): string | undefined => secretPattern.exec(secret)?.[1]

export const createSecret = (organizationKey: string) => `${organizationKey}.${randomBytes(32).toString('base64url')}`

/**
 * The stored digest of a secret. A slow hash protects secrets that people choose. These secrets have 256 random bits
 * and cannot be guessed, and with a slow hash unauthenticated requests could cause expensive work.
 */
export const digest = (secret: string): Buffer => hash('sha256', secret, 'buffer')

/**
 * Creates the code of a one-time link. `scope` lists scopes, separated by spaces. Throws a Fault: `not_found` for an
 * unknown organization, and `invalid_parameter` for no scope, an unknown scope, or a name that is empty, exceeds 255
 * characters or has control characters.
 */
export async function createSignInCode(
  db: Database,
  { organizationKey, name, scope }: { organizationKey: string; name: string; scope: string },
): Promise<string> {
  const words = requireScopes(scope)
  requireActorName(name)
  const organization = isOrganizationKey(organizationKey) && (await findOrganization(db, organizationKey))
  if (!organization) return refuse('not_found', `There is no organization ${JSON.stringify(organizationKey)}.`)
  const code = createSecret(organizationKey)
  await db.query(insertSignInCodeSql, [organization.id, digest(code), name, words.join(' '), codeSeconds])
  return code
}

type Organization = { id: number; key: string }

/** A new session. `token` is the value of its cookie, which kith does not store. */
export type StartedSession = { token: string; session: Session; organization: Organization }

type Queries = Pick<Database | Transaction, 'query'>

/** Starts a session with a code, and makes the code invalid. Returns undefined for an unknown, expired or used code. */
export async function startSessionWithCode(
  db: Database,
  code: string,
  signal?: Signal,
): Promise<StartedSession | undefined> {
  const organizationKey = organizationKeyOf(code)
  const organization = organizationKey !== undefined && (await findOrganization(db, organizationKey, signal))
  if (!organization) return undefined
  return db.transaction(
    async tx => {
      const [identity] = await tx.query<{ name: string; scope: string }>(useSignInCodeSql, [
        organization.id,
        digest(code),
      ])
      if (!identity) return undefined
      const name = await distinctName(tx, organization, identity.name, 'link')
      return startSession(tx, organization, { ...identity, name, method: 'code' })
    },
    { signal },
  )
}

/**
 * Starts a session of a person whom the outside issuer has identified. Undefined if the organization does not exist.
 */
export async function startSessionAtIssuer(
  db: Database,
  { organizationKey, ...identity }: { organizationKey: string } & Omit<Identity, 'method' | 'client_id'>,
  signal?: Signal,
): Promise<StartedSession | undefined> {
  const organization = await findOrganization(db, organizationKey, signal)
  if (!organization) return undefined
  const name = await distinctName(db, organization, identity.name, 'issuer')
  return startSession(db, organization, { ...identity, name, method: 'issuer' }, signal)
}

/**
 * The name of a session. It gets a suffix if an account has the same or a similar-looking name, because the change log
 * must distinguish them.
 */
async function distinctName(db: Queries, { id }: Organization, name: string, suffix: string): Promise<string> {
  const [account] = await db.query(findAccountNameSql, [id, lookAlikeOf(name)])
  return account ? withSuffix(name, ` (${suffix})`) : name
}

/** Starts a session of a person whose identity is verified. */
export async function startSession(
  db: Queries,
  organization: Organization,
  { name, scope, method, client_id, account_id, role = null }: Identity,
  signal?: Signal,
): Promise<StartedSession> {
  const token = createSecret(organization.key)
  const ids = [client_id ?? null, account_id ?? null]
  const values = [organization.id, randomUUID(), digest(token), name, scope, method, ...ids, sessionSeconds, role]
  const [row] = await (db as Database).query<SessionRow>(insertSessionSql, values, signal)
  return { token, session: sessionOf(row!), organization }
}

const sessionOf = ({ scope, ...session }: SessionRow): Session => ({ ...session, scopes: parseScopes(scope) })

/** Reads the session of a token. `isLive` is false if the session has expired, or if it or its client was revoked. */
export async function readSession(
  { db, organization_id }: Context,
  token: string,
  signal?: Signal,
): Promise<{ session: Session; isLive: boolean } | undefined> {
  const [row] = await db.query<SessionRow & { is_live: boolean }>(
    readSessionSql,
    [organization_id, digest(token)],
    signal,
  )
  if (!row) return undefined
  const { is_live: isLive, ...session } = row
  return { session: sessionOf(session), isLive }
}

/** The live sessions of an organization, newest first. At most 1,000. */
export const listSessions = ({ db, organization_id }: Context, signal?: Signal): Promise<ListedSession[]> =>
  db.query<ListedSession>(listSessionsSql, [organization_id, maxListed], signal)

/** Ends a session. Other processes refuse it within seconds. Returns false if it had already ended or never existed. */
export async function endSession({ db, organization_id }: Context, id: string, signal?: Signal): Promise<boolean> {
  return (await db.query(revokeSessionSql, [organization_id, id], signal)).length > 0
}

/** Deletes the expired sessions and codes of all organizations. */
export async function deleteExpired(db: Database): Promise<void> {
  await db.query(deleteExpiredSessionsSql, [])
  await db.query(deleteExpiredCodesSql, [])
}
