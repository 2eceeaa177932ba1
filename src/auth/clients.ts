import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../process/signal.ts'
import type { Caller } from '../route/caller.ts'
import { buildScopeRefusal, splitScopes } from '../route/scopes.ts'
import { actorNameMessage, isActorName, organizationOf } from '../values/actor-names.ts'
import { Fault, refuse } from '../values/errors.ts'
import { withUnseen } from '../values/invisible-characters.ts'
import { requireRole } from './caller-role.ts'
import {
  findClientSql,
  insertClientSql,
  listClientsSql,
  readClientPageSql,
  readClientSql,
  revokeClientSql,
} from './sql.ts'

/** A program that fetches its own tokens. `revoked_at` is null while it may. */
export type Client = {
  id: string
  name: string
  scope: string
  role: string | null
  created_at: string
  revoked_at: string | null
}

/** The credentials of a client. The secret is returned only once, when the client is created. */
export type Credentials = { client_id: string; client_secret: string }

type ClientRow = { name: string; scope: string; role: string | null; secret_sha256: Buffer }

/** The name of a client: empty, or as that of an actor. */
export const isClientName = (name: string): boolean => name === '' || isActorName(name)

/**
 * The stored digest of a secret. A slow hash protects secrets that people choose. This secret has 256 random bits and
 * cannot be guessed, and a slow hash would let unauthenticated requests cause expensive work.
 */
const digest = (secret: string) => createHash('sha256').update(secret).digest()

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
  const words = splitScopes(scope)
  const refusal = buildScopeRefusal(words)
  if (refusal) throw new Fault(refusal)
  if (!isClientName(name))
    refuse('invalid_parameter', withUnseen(`The name must be empty or ${actorNameMessage}.`, name))
  const organization = isOrganizationKey(organizationKey) && (await findOrganization(db, organizationKey))
  if (!organization) return refuse('not_found', `There is no organization ${JSON.stringify(organizationKey)}.`)
  if (role !== null) await requireRole(contextOf(db, organization.id), role)
  const { id, client_secret } = await insertClient(db, organization, { name, scope: words.join(' '), role })
  return { client_id: id, client_secret }
}

/** Inserts a client with a new secret. The name and the scopes are checked by the caller. */
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

export const listClients = (db: Database, organization_id: number): Promise<Client[]> =>
  db.query<Client>(listClientsSql, [organization_id])

/** Reads clients, newest first: those after the client `before`, at most `limit`. */
export const readClientPage = (
  db: Database,
  organization_id: number,
  { before, limit }: { before: string | undefined; limit: number },
  signal?: Signal,
): Promise<Client[]> => db.query<Client>(readClientPageSql, [organization_id, before ?? null, limit], signal)

/** Reads a client, revoked or not. Undefined if the organization has none with this id. */
export async function findClient(
  db: Database,
  organization_id: number,
  client_id: string,
  signal?: Signal,
): Promise<Client | undefined> {
  const [client] = await db.query<Client>(findClientSql, [organization_id, client_id], signal)
  return client
}

/** Revokes a client: it gets no more tokens, and its tokens are refused within seconds. Throws a Fault `not_found`. */
export async function revokeClient(db: Database, client_id: string): Promise<void> {
  const organizationKey = organizationOf(client_id)
  const organization = organizationKey !== undefined && (await findOrganization(db, organizationKey))
  const rows = organization ? await db.query(revokeClientSql, [organization.id, client_id]) : []
  if (rows.length === 0)
    refuse('not_found', `The client ${JSON.stringify(client_id)} does not exist or is already revoked.`)
}

/** A client whose secret was right. */
export type VerifiedClient = {
  organization: Caller['organization']
  name: string
  scope: string
  role: string | null
}

/**
 * The organization, name and scope of a client if its secret is right. An unknown id of the right form costs as much work as a wrong secret.
 */
export async function verifyClient(
  db: Database,
  { client_id, client_secret }: Credentials,
  signal?: Signal,
): Promise<VerifiedClient | undefined> {
  const organizationKey = organizationOf(client_id)
  if (organizationKey === undefined) return undefined
  const organization = await findOrganization(db, organizationKey, signal)
  const [client] = await db.query<ClientRow>(readClientSql, [organization?.id ?? 0, client_id], signal)
  const isRight = timingSafeEqual(digest(client_secret), client?.secret_sha256 ?? digest(''))
  if (!client || !organization || !isRight) return undefined
  const { name, scope, role } = client
  return { organization, name, scope, role }
}
