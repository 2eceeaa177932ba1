import { storeOperation } from '../src/accesses/access-log.ts'
import { loadOrCreateKeys } from '../src/auth/keys/keys.ts'
import { type Database, openDatabase } from '../src/db/db.ts'
import { startEmbedded } from '../src/db/embedded.ts'
import { migrate } from '../src/db/migrate.ts'
import { probe } from '../src/db/servers/probe.ts'
import { openMasterKeys } from '../src/keys-at-rest/key-file.ts'
import { ensureMasterKey } from '../src/keys-at-rest/keys-at-rest.ts'
import { ensureLedgerKey } from '../src/ledger/keys.ts'
import {
  ensureDefaultOrganization,
  findOrganization,
  isOrganizationKey,
  listOrganizations,
  type Organization,
} from '../src/organizations/organizations.ts'
import { type Config, loadConfig } from '../src/process/config.ts'
import { printStderr } from './terminal.ts'

/** The database of a command. `migrations` names the migrations that this command has run in it. */
export type Session = { config: Config; db: Database; migrations: string[] }

type Storage = { url: string; stop(): Promise<void> }

const statementTimeoutMs = 30_000

/**
 * Runs `work` on the database that `serve` uses in the same environment: the server of DATABASE_URL, else the embedded
 * one. A running embedded server is shared; a stopped one is started until `work` ends. The database is prepared as
 * when the service starts: with migrations, the organization `default` and the keys. For `forgetsLost`, see {@link
 * ensureMasterKey}.
 */
export async function withSession<T>(
  environment: NodeJS.ProcessEnv,
  work: (session: Session) => Promise<T>,
  options: { forgetsLost?: boolean } = {},
): Promise<T> {
  const config = loadConfig(environment)
  return withServer(config, async url => {
    const migrations = await migrate(url)
    const application_name = 'kith command'
    const db = openDatabase(url, {
      connections: 1,
      statementTimeoutMs,
      application_name,
      masterKeys: openMasterKeys(config),
    })
    try {
      await ensureMasterKey(db, config, options)
      await ensureDefaultOrganization(db)
      await loadOrCreateKeys(db)
      await ensureLedgerKey(db)
      return await work({ config, db, migrations })
    } finally {
      await db.close()
    }
  })
}

/** Records a command in the access logs of some organizations, unless accesses are not logged. */
export async function recordOperation(
  { config, db }: Session,
  organizations: readonly number[],
  operation: Parameters<typeof storeOperation>[2],
): Promise<void> {
  if (config.accessLog !== 'off') await storeOperation(db, organizations, operation)
}

/** Finds an organization by its key. Throws if there is none. */
export async function requireOrganization(db: Database, key: string): Promise<Organization> {
  const organization = isOrganizationKey(key) && (await findOrganization(db, key))
  if (!organization) throw new Error(`There is no organization ${JSON.stringify(key)}. See kith org list.`)
  return organization
}

/** The organization with this key, or all of them without a key. */
export const organizationsOf = async (db: Database, key: string | undefined): Promise<Organization[]> =>
  key === undefined ? listOrganizations(db) : [await requireOrganization(db, key)]

/**
 * Runs `work` with the address of that database, without a migration. A stopped embedded server is started until `work`
 * ends.
 */
export async function withServer<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const storage = await openStorage(config)
  try {
    return await work(storage.url)
  } finally {
    await storage.stop()
  }
}

async function openStorage({ databaseUrl, dataDir, logLevel }: Config): Promise<Storage> {
  // Failures are thrown. The log of the embedded server would only hide the output of the command.
  const log = ['debug', 'trace'].includes(logLevel) ? printStderr : () => {}
  if (!databaseUrl) return startEmbedded({ dataDir, purpose: 'command', log })
  await probe(databaseUrl)
  return { url: databaseUrl, stop: async () => {} }
}
