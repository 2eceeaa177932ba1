import cluster from 'node:cluster'
import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import closeWithGrace from 'close-with-grace'
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
import { queueLengths } from './entities/queues.ts'
import { sweepLinks } from './entities/sweep.ts'
import { createDrain } from './http/drain.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import type { App } from './http/server.ts'
import { reloadOnHangup } from './http/tls.ts'
import { forgetKeys } from './idempotency/forget.ts'
import { collectWhenIdle } from './idle-memory.ts'
import { createInstruments, instrumentStarter, type RunningInstruments } from './instruments/instruments.ts'
import { createLogger } from './logger.ts'
import { ensureDefaultOrganization } from './organizations/directory.ts'
import { firstSteps } from './welcome.ts'
import { heedStop, startWorkers, type Workers } from './workers.ts'

/** SIGTERM to exit, at most; a worker has to be gone a moment before the process that waits for it. */
const shutdown_ms = 11_800
const worker_shutdown_ms = 200
/** How long whoever comes after SIGTERM is served, so that a balancer may ask /readyz first. */
const drain_serving_ms = 1_000
/** How much longer than its time a request may take, so that even a 504 is answered; less than the shutdown in all. */
const drain_grace_ms = 300
const drain_limit_ms = 11_300
/** The server's own end of a statement stands a second behind the request's. */
const statement_grace_ms = 1_000
const sweep_interval_ms = 30_000
const fill_interval_ms = 1_000
const forget_interval_ms = 60_000
const collect_interval_ms = 5_000

/**
 * Runs the service until a signal ends it: configuration, database, migrations, keys, listening, draining. With more than
 * one worker this process keeps the database, and each worker, which is this program again, serves. With `json` standard
 * output is one JSON value, the address, and the log goes to standard error.
 */
export async function serve(environment: NodeJS.ProcessEnv, { workers = 1, json = false } = {}): Promise<void> {
  const config = loadConfig(environment)
  const logger = createLogger(config.log_level, json ? process.stderr : process.stdout)
  const closing: Closing = []
  const stop = async () => {
    for (const close of closing.splice(0).reverse()) await close()
  }
  let starting: Promise<string> | undefined
  const delay = cluster.isWorker ? shutdown_ms - worker_shutdown_ms : shutdown_ms
  const skip: 'SIGHUP'[] = config.tls ? ['SIGHUP'] : []
  const grace = closeWithGrace({ delay, logger: false, skip }, async ({ signal, err }) => {
    if (err) logger.fatal({ fault: err.name, stack: err.stack }, 'an error that nobody caught ends the process')
    else logger.info({ signal }, 'draining')
    await starting?.catch(() => {})
    await stop()
  })
  if (cluster.isWorker) heedStop(grace.close)
  try {
    const spread = cluster.isPrimary && workers > 1
    starting = spread ? startSpread(workers, environment, config, logger, closing) : start(config, logger, closing)
    const address = await starting
    if (cluster.isPrimary) process.stdout.write(json ? `${JSON.stringify({ address })}\n` : firstSteps(address, config))
  } catch (error) {
    await stop()
    grace.uninstall()
    // What connects a worker with its starter would keep it from ending.
    if (cluster.isWorker) cluster.worker?.disconnect()
    throw error
  }
}

type Closing = (() => Promise<unknown>)[]

async function startSpread(
  count: number,
  environment: NodeJS.ProcessEnv,
  config: Config,
  logger: Logger,
  closing: Closing,
): Promise<string> {
  let workers: Workers | undefined
  // Each worker reads the files for itself.
  if (config.tls) process.on('SIGHUP', () => workers?.hangUp())
  const storage = await openStorage(config, logger)
  closing.push(() => storage.stop())
  instrumentStarter({ embedded_up: storage.up })
  workers = await startWorkers(count, { ...environment, DATABASE_URL: storage.url }, logger)
  closing.push(() => workers!.stop())
  if (config.rates.store === 'memory' && (config.rates.read || config.rates.write))
    logger.warn('KITH_RATE_STORE is memory: each worker counts by itself, so the rates are as many times as large')
  return urlOf(workers.address, config)
}

async function start(config: Config, logger: Logger, closing: Closing): Promise<string> {
  const tls_reload = config.tls && reloadOnHangup(config.tls, logger)
  closing.push(async () => tls_reload?.stop())
  const storage = await openStorage(config, logger)
  closing.push(() => storage.stop())
  const drain = createDrain()
  const instruments = await startInstruments(config, storage, logger, closing)
  const db = openDatabase(storage.url, {
    connections: config.database_connections,
    statement_timeout_ms: config.limits.request_ms + statement_grace_ms,
    observer: instruments.observer,
  })
  closing.push(() => db.close())
  instruments.watch({ pools: { main: db }, queues: () => queueLengths(db) })
  await ensureDefaultOrganization(db)
  const keys = await loadOrCreateKeys(db)
  const authenticator = createAuthenticator({ db, keys, config, report: problem => logger.warn(problem) })
  const rate_limiter = await createRateLimiter({ rates: config.rates, db, report: message => logger.warn(message) })
  closing.push(async () => rate_limiter?.close())
  const app = createApp({ db, config, authenticator, logger, drain, instruments, rate_limiter })
  tls_reload?.apply(app.server as Server)
  const address = await listen(app, config)
  for (const task of startHousekeeping(db, config, logger)) closing.push(() => task.stop())
  closing.push(() => app.close())
  const patience_ms = Math.min(drain_serving_ms + config.limits.request_ms + drain_grace_ms, drain_limit_ms)
  closing.push(() => drain.begin({ serving_ms: drain_serving_ms, patience_ms }))
  return address
}

async function startInstruments(
  { traces }: Config,
  { up }: Storage,
  logger: Logger,
  closing: Closing,
): Promise<RunningInstruments> {
  // Who wants no traces does not pay for what makes them: it is not even loaded.
  const report = (problem: string) => logger.warn(problem)
  const tracing = traces && (await import('./instruments/tracing.ts')).startTracing(traces, report)
  closing.push(async () => tracing?.stop())
  const instruments = createInstruments({ embedded_up: up, tracer: tracing?.tracer })
  closing.push(async () => instruments.stop())
  return instruments
}

type Storage = { url: string; up?: () => boolean; stop: () => Promise<void> }

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

async function listen(app: App, { host, port }: Config): Promise<string> {
  try {
    return await app.listen({ host, port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new Error(`PORT ${port} on ${host} is taken by another program: set PORT to a free one`)
    if (code === 'EACCES') throw new Error(`PORT ${port} may not be opened by this user: set PORT to one above 1023`)
    throw error
  }
}

function urlOf({ address, port }: Pick<AddressInfo, 'address' | 'port'>, { tls }: Config): string {
  return `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/**
 * Removes links that point to nothing, fills the indexes of attributes that were declared over stored values, forgets
 * the answers of yesterday's Idempotency-Keys, and collects garbage when there is nothing else to do.
 */
function startHousekeeping(db: Database, { limits }: Config, logger: Logger): Background[] {
  const report = (task: string) => (error: unknown) =>
    logger.warn({ task, fault: (error as Error).name }, 'a task in the background failed, and will be tried again')
  const grace_ms = 2 * limits.request_ms
  return [
    repeat(signal => sweepLinks(db, { grace_ms, signal }), sweep_interval_ms, report('sweep')),
    repeat(signal => fillIndexes(db, { signal }), fill_interval_ms, report('fill')),
    repeat(signal => forgetKeys(db, { signal }), forget_interval_ms, report('forget')),
    repeat(collectWhenIdle(), collect_interval_ms, report('collect')),
  ]
}
