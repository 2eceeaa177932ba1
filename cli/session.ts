import { loadOrCreateKeys } from '../src/auth/keys.ts'
import { type Config, loadConfig } from '../src/config.ts'
import { type Database, openDatabase } from '../src/db/db.ts'
import { startEmbedded } from '../src/db/embedded.ts'
import { migrate } from '../src/db/migrate.ts'
import { probe } from '../src/db/probe.ts'
import { ensureDefaultOrganization } from '../src/organizations/organizations.ts'

/** What a command works with. `migrations` are the names of those that ran just now. */
export type Session = { config: Config; db: Database; migrations: string[] }

type Storage = { url: string; stop(): Promise<void> }

const statementTimeoutMs = 30_000

/** Says something to the person at the terminal. Standard output is for what a command answers. */
export function printStderr(line: string): void {
  process.stderr.write(`${line}\n`)
}

/**
 * Runs `work` on the database that `serve` with the same environment works on, whether it runs or not: the server of
 * DATABASE_URL, else the embedded one, shared with a service or started for the while. The database is as a started
 * service would leave it: migrated, with an organization `default` and a signing key.
 */
export async function withSession<T>(
  environment: NodeJS.ProcessEnv,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const config = loadConfig(environment)
  return withServer(config, async url => {
    const migrations = await migrate(url)
    const db = openDatabase(url, { connections: 1, statementTimeoutMs, application_name: 'kith command' })
    try {
      await ensureDefaultOrganization(db)
      await loadOrCreateKeys(db)
      return await work({ config, db, migrations })
    } finally {
      await db.close()
    }
  })
}

/**
 * Runs `work` with the address of that database as it stands: nothing is migrated or made in it. An embedded server that
 * does not run is started for the while.
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
  // What goes wrong comes as an error; the rest concerns nobody who only wants a token.
  const log = ['debug', 'trace'].includes(logLevel) ? printStderr : () => {}
  if (!databaseUrl) return startEmbedded({ dataDir, purpose: 'command', log })
  await probe(databaseUrl)
  return { url: databaseUrl, stop: async () => {} }
}
