import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type Context, contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../process/signal.ts'
import { listPage } from '../route/result.ts'
import { requireScopes } from '../route/scopes.ts'
import { digest } from '../sessions/sessions.ts'
import { actorNameMessage, isActorName, organizationOf } from '../values/actor-names.ts'
import { refuse } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { requireRole } from './caller-role.ts'
import type { Client, ClientsQuery } from './schema.ts'
import { findClientSql, insertClientSql, readClientPageSql, readClientSql, revokeClientSql } from './sql.ts'

/** The credentials of a client. The secret is returned only once, when the client is created. */
export type Credentials = { client_id: string; client_secret: string }

type ClientRow = { name: string; scope: string; role: string | null; secret_sha256: Buffer }

type ClientRequest = { name: string; scope: string; role?: string | null | undefined }

/**
 * Creates a client of an organization. `scope` lists all scopes that its tokens may have, separated by spaces. Throws a
 * Fault: `not_found` for an unknown organization; `invalid_parameter` for no scope, an unknown scope, or a name that
 * has more than 255 characters or a control character.
 */
export async function createClient(
  db: Database,
  { organizationKey, name, scope, role = null }: ClientRequest & { organizationKey: string },
): Promise<Credentials> {
  const words = requireScopes(scope)
  if (name !== '' && !isActorName(name))
    refuse('invalid_parameter', withUnseen(`The name must be empty or ${actorNameMessage}.`, name))
  const organization = isOrganizationKey(organizationKey) && (await findOrganization(db, organizationKey))
  if (!organization) return refuse('not_found', `There is no organization ${JSON.stringify(organizationKey)}.`)
  if (role !== null) await requireRole(contextOf(db, organization.id), role)
  const { client_id, client_secret } = await insertClient(db, organization, { name, scope: words.join(' '), role })
  return { client_id, client_secret }
}

/** Inserts a client with a new secret. The caller checks the name and the scopes. */
export async function insertClient(
  db: Database,
  organization: { id: number; key: string },
  { name, scope, role = null }: ClientRequest,
  signal?: Signal,
): Promise<Client & Pick<Credentials, 'client_secret'>> {
  const client_id = `${organization.key}.${randomBytes(12).toString('base64url')}`
  const client_secret = randomBytes(32).toString('base64url')
  const values = [organization.id, client_id, name, scope, digest(client_secret), role]
  const [client] = await db.query<Client>(insertClientSql, values, signal)
  return { ...client!, client_secret }
}

/** Reads a page of clients, newest first: those after the client `before`. */
export async function readClientPage(
  { db, organization_id }: Context,
  { before, limit = 50 }: ClientsQuery,
  signal?: Signal,
): Promise<{ items: Client[]; has_more: boolean }> {
  const values = [organization_id, before ?? null, limit + 1]
  return listPage(await db.query<Client>(readClientPageSql, values, signal), limit)
}

/** Reads a client, revoked or not. Throws a Fault of 404. */
export async function readClient(
  { db, organization_id }: Context,
  client_id: string,
  signal?: Signal,
): Promise<Client> {
  const [client] = await db.query<Client>(findClientSql, [organization_id, client_id], signal)
  return client ?? refuse('not_found', 'There is no client with this id.')
}

/**
 * Revokes a client: it gets no more tokens, and its tokens are refused within seconds. Throws a Fault `not_found`,
 * which is the same for a client of another organization.
 */
export async function revokeClient(
  db: Database,
  client_id: string,
  organizationKey = organizationOf(client_id),
): Promise<void> {
  const organization = organizationKey !== undefined && (await findOrganization(db, organizationKey))
  const rows = organization ? await db.query(revokeClientSql, [organization.id, client_id]) : []
  if (rows.length === 0)
    refuse('not_found', `The client ${JSON.stringify(client_id)} does not exist or is already revoked.`)
}

/**
 * The organization, name and scope of a client if its secret is right. An unknown id of the right form takes as much
 * work as a wrong secret.
 */
export async function verifyClient(db: Database, { client_id, client_secret }: Credentials, signal?: Signal) {
  const organizationKey = organizationOf(client_id)
  if (organizationKey === undefined) return undefined
  const organization = await findOrganization(db, organizationKey, signal)
  const [client] = await db.query<ClientRow>(readClientSql, [organization?.id ?? 0, client_id], signal)
  const isRight = timingSafeEqual(digest(client_secret), client?.secret_sha256 ?? digest(''))
  if (!client || !organization || !isRight) return undefined
  const { name, scope, role } = client
  return { organization, name, scope, role }
}
