import type { Context } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import type { Limits } from '../process/config.ts'
import type { Signal } from '../process/signal.ts'
import { channels } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import type { ConsentType } from './definitions.ts'
import { clientLimits, type OrganizationShape } from './schema.ts'
import {
  findOrganizationSql,
  findOrganizationsSql,
  insertChangeHeadSql,
  insertFirstConsentTypeSql,
  insertOrganizationSql,
  insertTombstoneKeySql,
  listOrganizationsSql,
  readOrganizationSql,
} from './sql.ts'

/** A tenant. `created_at` is RFC 3339 in UTC. */
export type Organization = { id: number; key: string; created_at: string }

/** The key of the organization that every installation has. */
export const defaultOrganizationKey = 'default'

const keyPattern = /^[a-z][a-z0-9_-]{0,62}$/

/** Whether a text is a well-formed organization key: `^[a-z][a-z0-9_-]{0,62}$`. */
export const isOrganizationKey = (text: string): boolean => keyPattern.test(text)

const firstConsentType = {
  id: 1,
  key: 'marketing',
  name: 'Marketing',
  channels: [...channels.map(channel => ({ channel, is_default: true, double_opt_in: false }))],
} as const satisfies Partial<ConsentType>

/**
 * Creates an organization in one transaction, together with its head and consent type 1. Throws a Fault:
 * `invalid_parameter` for a malformed key, `duplicate_entry` for a key that is taken.
 */
export async function createOrganization(db: Database, key: string): Promise<Organization> {
  if (!isOrganizationKey(key)) throwInvalidKey()
  return (await insertOrganization(db, key)) ?? throwKeyTaken(key)
}

export async function listOrganizations(db: Database): Promise<Organization[]> {
  return db.query<Organization>(listOrganizationsSql, [])
}

/** The organization with this key. Undefined if it does not exist. */
export async function findOrganization(db: Database, key: string, signal?: Signal): Promise<Organization | undefined> {
  const [organization] = await db.query<Organization>(findOrganizationSql, [key], signal)
  return organization
}

/** The organizations with these keys. */
export const findOrganizations = (db: Database, keys: readonly string[]): Promise<Omit<Organization, 'created_at'>[]> =>
  db.query<Omit<Organization, 'created_at'>>(findOrganizationsSql, [keys])

type OrganizationRow = Pick<OrganizationShape, 'key' | 'created_at' | 'schema_version'> & OrganizationShape['counts']

/** The organization as its clients see it. Throws if it was deleted meanwhile. */
export async function describeOrganization(
  { db, organization_id }: Context,
  limits: Limits,
  signal?: Signal,
): Promise<OrganizationShape> {
  const [row] = await db.query<OrganizationRow>(readOrganizationSql, [organization_id], signal)
  if (!row) return refuse('unauthorized', 'The organization of the token was deleted.')
  const { stacks, attributes, consent_types, changes, ...organization } = row
  return { ...organization, counts: { stacks, attributes, consent_types, changes }, limits: clientLimits(limits) }
}

/** The organization `default`, created if it does not exist. Servers that start together get the same one. */
export async function ensureDefaultOrganization(db: Database): Promise<Organization> {
  const key = defaultOrganizationKey
  const organization =
    (await findOrganization(db, key)) ?? (await insertOrganization(db, key)) ?? (await findOrganization(db, key))
  if (!organization) throw new Error(`organization ${key} disappeared while it was being created`)
  return organization
}

/** Inserts an organization. Returns undefined if the key is taken. The transaction that took it has then committed. */
function insertOrganization(db: Database, key: string): Promise<Organization | undefined> {
  return db.transaction(async tx => {
    const [organization] = await tx.query<Organization>(insertOrganizationSql, [key])
    if (!organization) return undefined
    const { id, key: consentKey, name, channels } = firstConsentType
    await Promise.all([
      tx.query(insertChangeHeadSql, [organization.id]),
      tx.query(insertTombstoneKeySql, [organization.id]),
      tx.query(insertFirstConsentTypeSql, [organization.id, id, consentKey, name, JSON.stringify(channels)]),
    ])
    return organization
  })
}

function throwInvalidKey(): never {
  const message = 'must be 1 to 63 characters of a-z, 0-9, _ and -, and begin with a letter'
  return refuse('invalid_parameter', `The key of an organization ${message}.`, { details: [{ path: '/key', message }] })
}

function throwKeyTaken(key: string): never {
  const message = 'is the key of another organization, or of one that was deleted, whose tokens name it'
  return refuse('duplicate_entry', `The key ${key} ${message}.`, { details: [{ path: '/key', message }] })
}
