import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Database } from '../db/db.ts'
import { Fault, fail } from '../errors.ts'
import { findOrganization, isOrganizationKey } from '../organizations/organizations.ts'
import type { Signal } from '../signal.ts'
import type { Caller } from './caller.ts'
import { memoryTimes } from './organizations.ts'
import { refuseScopes, splitScopes } from './scopes.ts'
import { insertClientSql, listClientsSql, readClientSql, revokeClientSql } from './sql.ts'
import { createTtlCache } from './ttl-cache.ts'

/** A program that fetches its own tokens. `revoked_at` is null of one that may. */
export type Client = { id: string; name: string; scope: string; created_at: string; revoked_at: string | null }

/** What the program keeps. The secret is shown this once. */
export type Credentials = { client_id: string; client_secret: string }

type ClientRow = { scope: string; secret_sha256: Buffer }

/** The organization's key, and 96 random bits. */
const clientIdForm = /^([a-z][a-z0-9_-]{0,62})\.[\w-]{16}$/

/**
 * The digest under which a secret is kept. A slow hash protects secrets that people choose; this one is 256 random
 * bits, which nobody finds by trying, and a slow hash would be work that anybody can ask us for.
 */
const digest = (secret: string) => createHash('sha256').update(secret).digest()

/**
 * Makes a client of an organization, with all the scopes that its tokens may have. Throws a Fault: `not_found` for an
 * unknown organization, `invalid_parameter` for no scope, an unknown one, or a name beyond 255 characters.
 */
export async function createClient(
  db: Database,
  { organizationKey, name, scope }: { organizationKey: string; name: string; scope: string },
): Promise<Credentials> {
  const words = splitScopes(scope)
  const refusal = refuseScopes(words)
  if (refusal) throw new Fault(refusal)
  if (!/^\P{Cc}{0,255}$/u.test(name)) fail('invalid_parameter', 'A name has up to 255 characters, none a control.')
  const organization = isOrganizationKey(organizationKey) && (await findOrganization(db, organizationKey))
  if (!organization) return fail('not_found', `There is no organization ${JSON.stringify(organizationKey)}.`)
  const client_id = `${organization.key}.${randomBytes(12).toString('base64url')}`
  const client_secret = randomBytes(32).toString('base64url')
  await db.query(insertClientSql, [organization.id, client_id, name, words.join(' '), digest(client_secret)])
  return { client_id, client_secret }
}

export const listClients = (db: Database, organization_id: number): Promise<Client[]> =>
  db.query<Client>(listClientsSql, [organization_id])

/** Ends a client: no more tokens, and those it has are refused within seconds. Throws a Fault `not_found`. */
export async function revokeClient(db: Database, client_id: string): Promise<void> {
  const organizationKey = organizationOf(client_id)
  const organization = organizationKey !== undefined && (await findOrganization(db, organizationKey))
  const rows = organization ? await db.query(revokeClientSql, [organization.id, client_id]) : []
  if (rows.length === 0) fail('not_found', `There is no client ${JSON.stringify(client_id)} that could be revoked.`)
}

/** The key of the organization that a client id begins with; undefined for a text of another form. */
export const organizationOf = (client_id: string): string | undefined => clientIdForm.exec(client_id)?.[1]

/** What a client may have, if the secret is its own. One that is unknown costs as much as a wrong secret. */
export async function verifyClient(
  db: Database,
  { client_id, client_secret }: Credentials,
  signal?: Signal,
): Promise<{ organizationKey: string; scope: string } | undefined> {
  const organizationKey = organizationOf(client_id)
  if (organizationKey === undefined) return undefined
  const organization = await findOrganization(db, organizationKey, signal)
  const [client] = await db.query<ClientRow>(readClientSql, [organization?.id ?? 0, client_id], signal)
  const isRight = timingSafeEqual(digest(client_secret), client?.secret_sha256 ?? digest(''))
  return client && isRight ? { organizationKey, scope: client.scope } : undefined
}

type Organization = Caller['organization']

export type Clients = {
  /** See {@link Memory}: true for one that may still be spoken for. */
  peek(organization: Organization, client_id: string): true | undefined
  find(organization: Organization, client_id: string, signal?: Signal): Promise<true | undefined>
}

/** Which clients may still be spoken for: asked for anew every few seconds, so that a revoked one is soon refused. */
export function createClients(db: Database, nowMs: () => number): Clients {
  const memory = createTtlCache(
    async (key, signal) => {
      const [organization_id, client_id] = key.split(' ')
      const rows = await db.query(readClientSql, [organization_id, client_id], signal)
      return rows.length > 0 || undefined
    },
    { nowMs, ...memoryTimes },
  )
  const keyOf = ({ id, key }: Organization, client_id: string) =>
    organizationOf(client_id) === key ? `${id} ${client_id}` : undefined
  return {
    peek: (organization, client_id) => {
      const key = keyOf(organization, client_id)
      return key === undefined ? undefined : memory.peek(key)
    },
    find: async (organization, client_id, signal) => {
      const key = keyOf(organization, client_id)
      return key === undefined ? undefined : memory.find(key, signal)
    },
  }
}
