import type { AddressInfo } from 'node:net'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createApp } from './app.ts'
import { createAuthenticator } from './auth/authenticator.ts'
import { loadOrCreateKeys } from './auth/keys.ts'
import { type Background, repeat } from './background.ts'
import { type Config, loadConfig } from './config.ts'
import { type Database, openDatabase } from './db/db.ts'
import { startEmbedded } from './db/embedded.ts'
import { migrate } from './db/migrate.ts'
import { probe } from './db/probe.ts'
import { fillIndexes } from './entities/fill.ts'
import { sweepLinks } from './entities/sweep.ts'
import { createDrain } from './http/drain.ts'
import { createLogger } from './logger.ts'
import { ensureDefaultOrganization } from './organizations/directory.ts'
import { firstSteps } from './welcome.ts'

/** SIGTERM to exit, at most. */
const shutdown_ms = 11_700
/** How long whoever comes after SIGTERM is served, so that a balancer may ask /readyz first. */
const drain_serving_ms = 1_000
/** How much longer than its time a request may take, so that even a 504 is answered; less than the shutdown in all. */
const drain_grace_ms = 300
const drain_limit_ms = 11_300
/** The server's own end of a statement stands a second behind the request's. */
const statement_grace_ms = 1_000
const sweep_interval_ms = 30_000
const fill_interval_ms = 1_000

/** Runs the service until a signal ends it: configuration, database, migrations, keys, listening, draining. */
export async function serve(environment: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(environment)
  const logger = createLogger(config.log_level)
  const closing: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close()
  }
  let starting: Promise<string> | undefined
  const grace = closeWithGrace({ delay: shutdown_ms, logger: false }, async ({ signal, err }) => {
    if (err) logger.fatal({ fault: err.name, stack: err.stack }, 'an error that nobody caught ends the process')
    else logger.info({ signal }, 'draining')
    await starting?.catch(() => {})
    await stop()
  })
  try {
    starting = start(config, logger, closing)
    const address = await starting
    process.stdout.write(firstSteps(address, config))
  } catch (error) {
    await stop()
    grace.uninstall()
    throw error
  }
}

async function start(config: Config, logger: Logger, closing: (() => Promise<unknown>)[]): Promise<string> {
  const storage = await openStorage(config, logger)
  closing.push(() => storage.stop())
  const drain = createDrain()
  const db = openDatabase(storage.url, {
    connections: config.database_connections,
    statement_timeout_ms: config.limits.request_ms + statement_grace_ms,
  })
  closing.push(() => db.close())
  await ensureDefaultOrganization(db)
  const keys = await loadOrCreateKeys(db)
  const authenticator = createAuthenticator({ db, keys, config })
  const app = createApp({ db, config, authenticator, logger, drain })
  const address = await listen(app, config)
  for (const task of startHousekeeping(db, config, logger)) closing.push(() => task.stop())
  closing.push(() => app.close())
  const patience_ms = Math.min(drain_serving_ms + config.limits.request_ms + drain_grace_ms, drain_limit_ms)
  closing.push(() => drain.begin({ serving_ms: drain_serving_ms, patience_ms }))
  return address
}

type Storage = { url: string; stop: () => Promise<void> }

async function openStorage(config: Config, logger: Logger): Promise<Storage> {
  const log = (line: string) => logger.info({ component: 'postgresql' }, line)
  if (config.database_url) await probe(config.database_url)
  const storage: Storage = config.database_url
    ? { url: config.database_url, stop: async () => {} }
    : await startEmbedded({ data_dir: config.data_dir, purpose: 'serve', log })
  try {
    const ran = await migrate(storage.url)
    if (ran.length > 0) logger.info({ migrations: ran }, 'migrated')
    return storage
  } catch (error) {
    await storage.stop()
    throw error
  }
}

async function listen(app: FastifyInstance, { host, port, tls }: Config): Promise<string> {
  try {
    await app.listen({ host, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new Error(`PORT ${port} on ${host} is taken by another program: set PORT to a free one`)
    if (code === 'EACCES') throw new Error(`PORT ${port} may not be opened by this user: set PORT to one above 1023`)
    throw error
  }
  const bound = app.server.address() as AddressInfo
  const name = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
  return `${tls ? 'https' : 'http'}://${name}:${bound.port}`
}

/** Removes links that point to nothing, and fills the indexes of attributes that were declared over stored values. */
function startHousekeeping(db: Database, { limits }: Config, logger: Logger): Background[] {
  const report = (task: string) => (error: unknown) =>
    logger.warn({ task, fault: (error as Error).name }, 'a task in the background failed, and will be tried again')
  const grace_ms = 2 * limits.request_ms
  return [
    repeat(signal => sweepLinks(db, { grace_ms, signal }), sweep_interval_ms, report('sweep')),
    repeat(signal => fillIndexes(db, { signal }), fill_interval_ms, report('fill')),
  ]
}
