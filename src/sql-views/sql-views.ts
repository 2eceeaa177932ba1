import { createHash, randomBytes } from 'node:crypto'
import pg from 'pg'
import { type Database, statement, type Transaction } from '../db/db.ts'
import { isLockTimeout, isNotPermitted, isStillUsed } from '../db/pg-errors.ts'
import { type Definitions, readDefinitions } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import {
  clearRetiredSql,
  deleteViewsSql,
  endSessionsSql,
  findOrganizationOfViewsSql,
  findOutdatedViewsSql,
  findViewsSql,
  listViewNamesSql,
  lockViewsSql,
  updateViewsSql,
} from './sql.ts'
import { type View, viewsOf } from './view-text.ts'

/** The views of an organization: their schema, and the login role of PostgreSQL that reads it. */
export type ViewsId = { organization_id: number; schema_name: string }

/** A set of views as `kith views list` shows it. */
export type SqlViews = {
  schema_name: string
  login: string
  is_own_login: boolean
  role: string | null
  created_at: string
  retired: string[]
  has_login: boolean
  is_current: boolean | null
}

const quoted = pg.escapeIdentifier

/** Runs a command that takes no parameters. Its names are quoted. */
export const execute = (db: Pick<Transaction, 'query'>, text: string): Promise<unknown> =>
  db.query(statement('', text), [])

/** Returns all views of an organization, or those in one schema. */
export const findViews = (db: Pick<Database, 'query'>, organization_id: number, schema_name: string | null = null) =>
  db.query<SqlViews>(findViewsSql, [organization_id, schema_name])

type Locked = {
  login: string
  role: string | null
  digest: string | null
  retired: string[]
  has_login: boolean
  exists: boolean
}

/**
 * Recreates the views if they differ from the definitions. In one transaction, the schema with the new views takes the
 * name, which needs no lock that a query holds. The reader loses its rights on the earlier schema immediately, and
 * {@link dropRetired} drops that schema. Returns whether the views changed, and false while another process renews
 * them.
 */
export const renewViews = (db: Database, id: ViewsId): Promise<boolean> =>
  db.transaction(tx => renewWithin(tx, id), { lockTimeoutMs: 1_000 })

/** Runs {@link renewViews} in a transaction. */
export async function renewWithin(tx: Transaction, { organization_id, schema_name }: ViewsId): Promise<boolean> {
  const [views] = await tx.query<Locked>(lockViewsSql, [organization_id, schema_name])
  if (!views) return false
  const definitions = await readDefinitions({ db: tx, organization_id })
  const made = viewsFor(definitions, views.role)
  const digest = createHash('sha256').update(JSON.stringify(made)).digest('hex')
  const isChanged = !views.exists || digest !== views.digest
  const retired = isChanged && views.exists ? [...views.retired, await retire(tx, schema_name, views)] : views.retired
  if (isChanged) await makeSchema(tx, schema_name, made, views)
  await tx.query(updateViewsSql, [organization_id, schema_name, definitions.version, digest, retired])
  return isChanged
}

/** Returns the views for a role. An archived role of kith opens nothing. */
function viewsFor(definitions: Definitions, key: string | null): View[] {
  if (key === null) return viewsOf(definitions, undefined)
  const role = definitions.roles.find(each => each.key === key)
  return role?.state === 'active' ? viewsOf(definitions, role) : []
}

/**
 * Renames the schema of the earlier views, which a running query continues to read. A prepared statement refers to them
 * too, so the reader loses its rights on them.
 */
async function retire(tx: Transaction, schema_name: string, { login, has_login }: Locked): Promise<string> {
  const name = `kith_old_${randomBytes(12).toString('hex')}`
  await execute(tx, `alter schema ${quoted(schema_name)} rename to ${quoted(name)}`)
  if (!has_login) return name
  await execute(tx, `revoke all on all tables in schema ${quoted(name)} from ${quoted(login)}`)
  await execute(tx, `revoke all on schema ${quoted(name)} from ${quoted(login)}`)
  return name
}

async function makeSchema(
  tx: Transaction,
  schema_name: string,
  views: View[],
  { login, has_login }: Locked,
): Promise<void> {
  const schema = quoted(schema_name)
  await execute(tx, `create schema ${schema}`)
  for (const { name, query } of views)
    await execute(tx, `create view ${schema}.${quoted(name)} with (security_barrier) as ${query}`)
  if (!has_login) return
  await execute(tx, `grant usage on schema ${schema} to ${quoted(login)}`)
  await execute(tx, `grant select on all tables in schema ${schema} to ${quoted(login)}`)
}

/**
 * Drops the earlier schemas of views. Returns false if a query still reads one, or if an object of another user depends
 * on one. Such an object stays.
 */
export async function dropRetired(db: Database, { organization_id, schema_name }: ViewsId): Promise<boolean> {
  const drop = async (tx: Transaction) => {
    const [views] = await tx.query<Locked>(lockViewsSql, [organization_id, schema_name])
    for (const name of views?.retired ?? []) {
      const names = await tx.query<{ name: string }>(listViewNamesSql, [name])
      const all = names.map(view => `${quoted(name)}.${quoted(view.name)}`)
      if (all.length > 0) await execute(tx, `drop view ${all.join(', ')}`)
      await execute(tx, `drop schema if exists ${quoted(name)}`)
    }
    if (views?.retired.length) await tx.query(clearRetiredSql, [organization_id, schema_name])
    return true
  }
  try {
    return await db.transaction(drop, { lockTimeoutMs: 100 })
  } catch (error) {
    if (isLockTimeout(error) || isStillUsed(error)) return false
    throw error
  }
}

/**
 * Deletes views with their schemas, and the login role if kith created it. If PostgreSQL refuses to drop the role,
 * returns the reason. Throws an Error with one sentence if a session still reads the views.
 */
export async function dropViews(db: Database, organization_id: number, views: SqlViews): Promise<string | undefined> {
  const { schema_name, login } = views
  const isOwn = views.is_own_login && views.has_login
  const isClosed = isOwn && (await closeLogin(db, login))
  try {
    await db.transaction(tx => dropSchemas(tx, { organization_id, schema_name }), { lockTimeoutMs: 5_000 })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new Error(`A session reads the views of ${schema_name}. End it, and run the command again.`, { cause: error })
  }
  if (!isOwn) return undefined
  return execute(db, `drop role ${quoted(login)}`).then(
    () => undefined,
    (error: pg.DatabaseError) => `The role ${login} is kept${isClosed ? ', and cannot log in' : ''}: ${error.message}.`,
  )
}

/** Ends the sessions of a role, and prevents new ones. Returns false if the service lacks the right to. */
async function closeLogin(db: Database, login: string): Promise<boolean> {
  try {
    await execute(db, `alter role ${quoted(login)} nologin`)
    await db.query(endSessionsSql, [login])
    return true
  } catch (error) {
    if (isNotPermitted(error)) return false
    throw error
  }
}

async function dropSchemas(tx: Transaction, { organization_id, schema_name }: ViewsId): Promise<void> {
  const [deleted] = await tx.query<{ retired: string[] }>(deleteViewsSql, [organization_id, schema_name])
  for (const name of deleted ? [schema_name, ...deleted.retired] : [])
    await execute(tx, `drop schema if exists ${quoted(name)} cascade`)
}

/** Deletes all views of an organization, even while it is being deleted. Returns the reasons why roles were kept. */
export async function dropAllViews(db: Database, organizationKey: string): Promise<string[]> {
  const [organization] = await db.query<{ id: number }>(findOrganizationOfViewsSql, [organizationKey])
  const kept: string[] = []
  for (const views of organization ? await findViews(db, organization.id) : []) {
    const reason = await dropViews(db, organization!.id, views)
    if (reason !== undefined) kept.push(reason)
  }
  return kept
}

/** The time after which views are tried again after a failure. */
const retryMs = 10_000

/** Returns a function that runs work for views, unless it failed or returned false shortly before. */
function createAttempts() {
  const retryAtMs = new Map<string, number>()
  return async ({ schema_name }: ViewsId, work: () => Promise<boolean>): Promise<void> => {
    if ((retryAtMs.get(schema_name) ?? 0) > Date.now()) return
    retryAtMs.set(schema_name, Date.now() + retryMs)
    if (await work()) retryAtMs.delete(schema_name)
  }
}

/**
 * Returns the background task that renews the views of all organizations. Its first run checks all of them, because a
 * new version of kith may create other views from the same definitions.
 */
export function viewsRenewal(db: Database): (signal: Signal) => Promise<void> {
  let unseen: Set<string> | undefined
  const [renewing, dropping] = [createAttempts(), createAttempts()]
  return async signal => {
    const found = await db.query<Found>(findOutdatedViewsSql, [unseen === undefined || unseen.size > 0], signal)
    const names = new Set(found.map(({ schema_name }) => schema_name))
    unseen = unseen?.intersection(names) ?? names
    const failures: unknown[] = []
    const keep = (error: unknown) => void failures.push(error)
    for (const id of found) {
      if (signal.aborted) return
      const { schema_name, is_outdated } = id
      let isRenewed = false
      const renew = async () => {
        isRenewed = await renewViews(db, id)
        unseen?.delete(schema_name)
        return true
      }
      if (is_outdated || unseen.has(schema_name)) await renewing(id, renew).catch(keep)
      if (isRenewed || id.has_retired) await dropping(id, () => dropRetired(db, id)).catch(keep)
    }
    if (failures.length > 0) throw failures[0]
  }
}

type Found = ViewsId & { is_outdated: boolean; has_retired: boolean }
