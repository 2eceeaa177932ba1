import { channels } from '../channels.ts'
import type { Limits } from '../config.ts'
import type { Database, Transaction } from '../db/db.ts'
import { isUniqueViolation } from '../db/pg-errors.ts'
import { refuse } from '../errors.ts'
import type { Signal } from '../signal.ts'
import type { ConsentType } from './definitions.ts'
import { clientLimits, type OrganizationShape } from './schema.ts'
import {
  deleteLeftoverSql,
  findOrganizationSql,
  insertChangeHeadSql,
  insertFirstConsentTypeSql,
  insertOrganizationSql,
  insertResidentSql,
  insertTombstoneKeySql,
  listOrganizationsSql,
  listResidentsSql,
  readOrganizationSql,
} from './sql.ts'

/**
 * A tenant. `created_at` is RFC 3339 in UTC, `cell` the name of the database that has its rows. `moving_to` is the cell that it moves to,
 * and `moves` counts its moves.
 */
export type Organization = Placement & { key: string; created_at: string }

/** Where an organization lives. */
export type Placement = { id: number; cell: string; moving_to: string | null; moves: number }

/** A database for a new organization. */
export type Home = { name: string; db: Database }

/** The key of the organization that every installation has. */
export const defaultOrganizationKey = 'default'

/** The name of the first cell: the database of DATABASE_URL, or the embedded one. It has the directory of all organizations. */
export const firstCellName = 'main'

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
 * Creates an organization in one transaction, together with its head and consent type 1. `db` is the first cell, `home` another one
 * in which it shall live. Throws a Fault: `invalid_parameter` for a malformed key, `duplicate_entry` for a key that is taken.
 */
export async function createOrganization(db: Database, key: string, home?: Home): Promise<Organization> {
  if (!isOrganizationKey(key)) throwInvalidKey()
  return (await insertOrganization(db, key, home)) ?? throwKeyTaken(key)
}

export async function listOrganizations(db: Database): Promise<Organization[]> {
  return db.query<Organization>(listOrganizationsSql, [])
}

/** The organizations whose rows are in this database. */
export async function listResidents(db: Database): Promise<{ id: number }[]> {
  return db.query<{ id: number }>(listResidentsSql, [])
}

/** The organization with this key. Undefined if it does not exist. */
export async function findOrganization(db: Database, key: string, signal?: Signal): Promise<Organization | undefined> {
  const [organization] = await db.query<Organization>(findOrganizationSql, [key], signal)
  return organization
}

type OrganizationRow = Pick<OrganizationShape, 'key' | 'created_at' | 'schema_version'> & OrganizationShape['counts']

/** The organization as its clients see it. Throws where it was deleted meanwhile. */
export async function describeOrganization(
  db: Database,
  organization_id: number,
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

/**
 * Inserts an organization. Returns undefined if the key is taken; the transaction that took it has then committed. The rows in another
 * cell are committed before the directory names that cell: an organization that is found is whole.
 */
function insertOrganization(db: Database, key: string, home?: Home): Promise<Organization | undefined> {
  return db.transaction(async tx => {
    const [organization] = await tx.query<Organization>(insertOrganizationSql, [key, home?.name ?? firstCellName])
    if (!organization) return undefined
    const { id, created_at } = organization
    if (!home) await insertFirstRows(tx, id)
    else
      await home.db.transaction(async inHome => {
        await inHome.query(deleteLeftoverSql, [key])
        await inHome.query(insertResidentSql, [id, key, created_at, home.name]).catch(error => {
          throw isUniqueViolation(error) ? new Error(unknownResident(home.name, key), { cause: error }) : error
        })
        await insertFirstRows(inHome, id)
      })
    return organization
  })
}

async function insertFirstRows(tx: Transaction, organization_id: number): Promise<void> {
  const { id, key, name, channels } = firstConsentType
  await Promise.all([
    tx.query(insertChangeHeadSql, [organization_id]),
    tx.query(insertTombstoneKeySql, [organization_id]),
    tx.query(insertFirstConsentTypeSql, [organization_id, id, key, name, JSON.stringify(channels)]),
  ])
}

const unknownResident = (cell: string, key: string) =>
  `The cell ${cell} has rows of another organization with this number or the key ${key}, which the directory does not know. Was main restored from an older backup? Nothing was created.`

function throwInvalidKey(): never {
  const message = 'must be 1 to 63 characters of a-z, 0-9, _ and -, and begin with a letter'
  return refuse('invalid_parameter', `The key of an organization ${message}.`, { details: [{ path: '/key', message }] })
}

function throwKeyTaken(key: string): never {
  const message = `is the key of another organization`
  return refuse('duplicate_entry', `The organization ${key} already exists.`, { details: [{ path: '/key', message }] })
}
