import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Context } from '../db/context.ts'
import type { Database, Transaction } from '../db/db.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../process/signal.ts'
import { buildScopeRefusal, parseScopes, type Scope, splitScopes } from '../route/scopes.ts'
import { actorNameMessage, isActorName } from '../values/actor-names.ts'
import { createValueRefusal, Fault, refuse } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import {
  deleteExpiredCodesSql,
  deleteExpiredSessionsSql,
  insertSessionSql,
  insertSignInCodeSql,
  listSessionsSql,
  readLiveSessionSql,
  readSessionSql,
  revokeSessionSql,
  useSignInCodeSql,
} from './sql.ts'

/** A session lasts a working day. */
export const sessionSeconds = 43_200
/** A link is opened at once, on the machine that printed it. */
export const codeSeconds = 60
const maxListed = 1_000

/** The way in which a session began: with a one-time link, with the credentials of a client, or at the outside issuer. */
export type SignInMethod = 'code' | 'client' | 'issuer'

/** The person or client that signs in: the name that the change log shows as the actor, the scopes, and the role if it has one. */
export type Identity = {
  name: string
  scope: string
  method: SignInMethod
  client_id?: string
  role?: string | null | undefined
}

const maxNameCharacters = 255

/**
 * The identity of a client's session. Its name ends with the client_id, because several clients may have one name, and the change log
 * must tell them apart.
 */
export function clientIdentity(
  { name, scope, role }: { name: string; scope: string; role: string | null },
  client_id: string,
): Identity {
  const suffix = ` (${client_id})`
  const shown = [...name].slice(0, maxNameCharacters - suffix.length).join('')
  return { name: shown === '' ? client_id : `${shown}${suffix}`, scope, role, method: 'client', client_id }
}

/** A session. `expires_at` is RFC 3339 in UTC. */
export type Session = { id: string; name: string; scopes: ReadonlySet<Scope>; role: string | null; expires_at: string }

type SessionRow = { id: string; name: string; scope: string; role: string | null; expires_at: string }

/** An organization's key, a dot, and 256 random bits. */
const secretPattern = /^([a-z][a-z0-9_-]{0,62})\.[\w-]{43}$/

/** The organization key that a cookie or a code begins with. Undefined for a malformed one. */
export const organizationKeyOf = (secret: string): string | undefined => secretPattern.exec(secret)?.[1]

const createSecret = (organizationKey: string) => `${organizationKey}.${randomBytes(32).toString('base64url')}`

/** The stored digest. The secret has 256 random bits, so it needs no slow hash (as the secrets of clients). */
const digest = (secret: string) => createHash('sha256').update(secret).digest()

/**
 * Creates the code of a one-time link. `scope` lists scopes, separated by spaces. Throws a Fault: `not_found` for an unknown
 * organization; `invalid_parameter` for no scope, an unknown scope, or a name that is not 1 to 255 characters without control
 * characters.
 */
export async function createSignInCode(
  db: Database,
  { organizationKey, name, scope }: { organizationKey: string; name: string; scope: string },
): Promise<string> {
  const words = splitScopes(scope)
  const refusal = buildScopeRefusal(words)
  if (refusal) throw new Fault(refusal)
  if (!isActorName(name))
    throw new Fault(createValueRefusal('/name', withUnseen(`The name ${actorNameMessage}.`, name)))
  const organization = isOrganizationKey(organizationKey) && (await findOrganization(db, organizationKey))
  if (!organization) return refuse('not_found', `There is no organization ${JSON.stringify(organizationKey)}.`)
  const code = createSecret(organizationKey)
  await db.query(insertSignInCodeSql, [organization.id, digest(code), name, words.join(' '), codeSeconds])
  return code
}

/** A new session. `token` is the value of its cookie, which is not stored. */
export type StartedSession = { token: string; session: Session }

type Organization = { id: number; key: string }

/**
 * Starts a session with a code, which no other request can use then. Returns undefined for a code that is unknown, expired or used.
 */
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
      return identity && insertSession(tx, organization, { ...identity, method: 'code' })
    },
    { signal },
  )
}

/** Starts a session of somebody whose identity is verified. */
export const startSession = (
  db: Database,
  organization: Organization,
  identity: Identity,
  signal?: Signal,
): Promise<StartedSession> => insertSession(db, organization, identity, signal)

/**
 * Starts a session of somebody whom the outside issuer has identified. Returns undefined if the organization does not exist.
 */
export async function startSessionAtIssuer(
  db: Database,
  { organizationKey, ...identity }: { organizationKey: string } & Omit<Identity, 'method' | 'client_id'>,
  signal?: Signal,
): Promise<StartedSession | undefined> {
  const organization = await findOrganization(db, organizationKey, signal)
  return organization && insertSession(db, organization, { ...identity, method: 'issuer' }, signal)
}

async function insertSession(
  db: Pick<Database | Transaction, 'query'>,
  { id: organization_id, key }: Organization,
  { name, scope, method, client_id = undefined, role = null }: Identity,
  signal?: Signal,
): Promise<StartedSession> {
  const token = createSecret(key)
  const values = [organization_id, randomUUID(), digest(token), name, scope, method, client_id, sessionSeconds, role]
  const [row] = await (db as Database).query<SessionRow>(insertSessionSql, values, signal)
  return { token, session: sessionOf(row!) }
}

const sessionOf = ({ scope, ...session }: SessionRow): Session => ({ ...session, scopes: parseScopes(scope) })

/** Reads the session of a token. `isLive` is false once the session has expired, or it or its client was revoked. */
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

/** The session with an id, if it is live. */
export const readLiveSession = (
  { db, organization_id }: Context,
  id: string,
  signal?: Signal,
): Promise<{ id: string }[]> => db.query<{ id: string }>(readLiveSessionSql, [organization_id, id], signal)

/** A session in the list of an organization. */
export type ListedSession = {
  id: string
  name: string
  scopes: string[]
  role: string | null
  method: SignInMethod
  client_id: string | null
  created_at: string
  expires_at: string
}

/** The live sessions of an organization, newest first, at most 1,000. */
export async function listSessions({ db, organization_id }: Context, signal?: Signal): Promise<ListedSession[]> {
  type Row = Omit<ListedSession, 'scopes'> & { scope: string }
  const rows = await db.query<Row>(listSessionsSql, [organization_id, maxListed], signal)
  return rows.map(({ scope, ...session }) => ({ ...session, scopes: splitScopes(scope) }))
}

/** Ends a session. Other processes refuse it within seconds. Returns false if it has ended before or never existed. */
export async function endSession({ db, organization_id }: Context, id: string, signal?: Signal): Promise<boolean> {
  return (await db.query(revokeSessionSql, [organization_id, id], signal)).length > 0
}

/** Ends a session, as {@link endSession}. Throws a Fault `not_found` if it has ended before or never existed. */
export async function revokeSession(...session: Parameters<typeof endSession>): Promise<void> {
  if (!(await endSession(...session))) refuse('not_found', 'The session does not exist or has ended.')
}

/** Deletes the expired sessions and codes of all organizations. */
export async function deleteExpired(db: Database): Promise<void> {
  await db.query(deleteExpiredSessionsSql, [])
  await db.query(deleteExpiredCodesSql, [])
}
