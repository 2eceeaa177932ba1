import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Database, Transaction } from '../../src/db/db.ts'
import { isNotPermitted } from '../../src/db/pg-errors.ts'
import { execute, renewWithin } from '../../src/sql-views/sql-views.ts'
import {
  insertViewsSql,
  listOtherDatabasesSql,
  listReachOfLoginSql,
  listReadersOfPublicSql,
  readServerSql,
} from './sql.ts'

export type NewViews = {
  organization_id: number
  schema_name: string
  /** The login role of PostgreSQL. kith creates it with the password. Without a password it must exist. */
  login: string
  password?: string | undefined
  /** The key of the kith role. The views leave out the fields that the role closes. */
  role?: string | undefined
}

type Server = {
  database: string
  owner: string
  has_citus: boolean
  owns_database: boolean
  owns_public: boolean
  is_superuser: boolean
  has_login: boolean
  has_schema: boolean
}

const namePattern = /^(?!pg_|kith_old_|public$|information_schema$)[a-z][a-z0-9_]{0,62}$/
const quoted = pg.escapeIdentifier

/** Whether a text may name a schema of views, or the login role that kith makes for it. */
export const isViewsName = (text: string): boolean => namePattern.test(text)

/** The settings of the login role. Its queries use indexes only, like those of the service. */
export const loginSettings = [
  'default_transaction_read_only = on',
  `statement_timeout = '60s'`,
  `idle_in_transaction_session_timeout = '60s'`,
  'enable_seqscan = off',
  'jit = off',
]
const maxConnections = 10

/**
 * Creates, in one transaction, a schema with views of an organization, and a login role that can read nothing else in
 * the database. Returns the other databases of the server that the role may connect to. Throws an Error with one
 * sentence of advice if the server or a missing right of the service does not allow it.
 */
export async function createViews(db: Database, views: NewViews): Promise<string[]> {
  const { organization_id, schema_name, login, password, role } = views
  return db.transaction(async tx => {
    const server = await requireServer(tx, views)
    if (password !== undefined) await createLogin(tx, server, { login, schema_name, password })
    const made = await tx.query(insertViewsSql, [
      organization_id,
      schema_name,
      login,
      password !== undefined,
      role ?? null,
    ])
    if (made.length === 0) throw new Error('The organization is being deleted.')
    await closePublic(tx, server)
    await renewWithin(tx, { organization_id, schema_name }).catch(
      adviceFor(
        `make schemas in the database ${server.database}`,
        `grant create on database ${quoted(server.database)} to ${quoted(server.owner)}`,
      ),
    )
    await requireNoReach(tx, views)
    const others = await tx.query<{ name: string }>(listOtherDatabasesSql, [login])
    return others.map(({ name }) => name)
  })
}

async function requireServer(tx: Transaction, { schema_name, login, password }: NewViews): Promise<Server> {
  const [row] = await tx.query<Server>(readServerSql, [login, schema_name])
  const server = row!
  if (server.has_citus)
    throw new Error(
      'Views need a database without Citus, whose workers check rights that only the owner of the views has.',
    )
  if (server.has_schema) throw new Error(`There is a schema ${schema_name} already. Choose another name with --schema.`)
  if (password === undefined && !server.has_login) throw new Error(`PostgreSQL has no role ${login}.`)
  if (password !== undefined && server.has_login)
    throw new Error(
      `PostgreSQL has a role ${login} already. Give it the views with --role ${login}, or choose another name with --schema.`,
    )
  return server
}

const adviceFor =
  (what: string, command: string, options = '') =>
  (error: unknown): never => {
    if (!isNotPermitted(error)) throw error
    throw new Error(
      `The database role of the service may not ${what}: let an administrator run \`${command}\`, and run the command again${options}.`,
      { cause: error },
    )
  }

type NewLogin = { login: string; schema_name: string; password: string }

async function createLogin(
  tx: Transaction,
  { database }: Server,
  { login, schema_name, password }: NewLogin,
): Promise<void> {
  const name = quoted(login)
  const create = `create role ${name} login connection limit ${maxConnections}`
  await execute(tx, `${create} password ${pg.escapeLiteral(verifierOf(password))}`).catch(
    adviceFor('create roles', `${create} password '…'`, ` with --role ${login}`),
  )
  for (const setting of [...loginSettings, `search_path = ${quoted(schema_name)}`])
    await execute(tx, `alter role ${name} in database ${quoted(database)} set ${setting}`)
}

const iterations = 4_096

/**
 * The verifier of a password for SCRAM-SHA-256. PostgreSQL stores it, so its log and monitors never see the password.
 */
function verifierOf(password: string): string {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const sign = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(sign('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${sign('Server Key').toString('base64')}`
}

/** The functions by which every role may store large objects. */
const storingFunctions = 'lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea)'

/**
 * Revokes what PostgreSQL grants to every role: the schema public, temporary tables and large objects. The service and
 * the roles with explicit grants in the schema keep it. {@link requireNoReach} finds the rights that the service may
 * not revoke.
 */
async function closePublic(
  tx: Transaction,
  { database, owner, owns_database, owns_public, is_superuser }: Server,
): Promise<void> {
  if (is_superuser) await execute(tx, `revoke execute on function ${storingFunctions} from public`)
  if (owns_database) {
    await execute(tx, `grant temporary on database ${quoted(database)} to ${quoted(owner)}`)
    await execute(tx, `revoke create, temporary on database ${quoted(database)} from public`)
  }
  if (!owns_public) return
  const readers = await tx.query<{ name: string }>(listReadersOfPublicSql, [])
  for (const name of new Set([owner, ...readers.map(reader => reader.name)]))
    await execute(tx, `grant usage on schema public to ${quoted(name)}`)
  await execute(tx, 'revoke all on schema public from public')
}

async function requireNoReach(tx: Transaction, { login, schema_name }: NewViews): Promise<void> {
  const reached = await tx.query<{ what: string }>(listReachOfLoginSql, [login, schema_name])
  if (reached.length === 0) return
  const list = reached.map(({ what }) => what).join(', ')
  throw new Error(
    `The role ${login} also has ${list}. Let an administrator revoke this from it or from public, and run the command again.`,
  )
}
