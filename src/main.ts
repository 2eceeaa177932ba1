import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { isatty } from 'node:tty'
import { AccessLog } from './accesses/access-log.ts'
import { accessFollower } from './accesses/follower.ts'
import { type Authenticator, createAuthenticator } from './auth/authenticator.ts'
import { deleteExpiredTokens, tokenUses } from './auth/issued-tokens.ts'
import { loadKeys, loadOrCreateKeys } from './auth/keys/keys.ts'
import { findBaseUrl } from './consent-links/consent-links.ts'
import type { Archiver } from './db/archive/archiver.ts'
import { type Database, openDatabase } from './db/db.ts'
import { findPending } from './db/distribution.ts'
import { type EmbeddedDatabase, startEmbedded } from './db/embedded.ts'
import { migrate, requireMigrated } from './db/migrate.ts'
import { persistentErrorMessage } from './db/pg-errors.ts'
import { waitForServer } from './db/servers/probe.ts'
import { startReads } from './db/standby/start-reads.ts'
import { backfillIndexes } from './entities/indexes/index-backfill.ts'
import { searchFollower } from './entities/indexes/search-index.ts'
import { queueLengths } from './entities/write/request-coalescing.ts'
import { addressAnswersFollower } from './entities/write/store/earlier-answers.ts'
import type { Follower } from './followers/follower.ts'
import { createFollowers, type Followers, readFollowerLag } from './followers/followers.ts'
import type { RateLimiter } from './http/overload/rate-limit.ts'
import { createDrain, drainGraceMs } from './http/server/drain.ts'
import type { App } from './http/server/server.ts'
import { listenWhileStarting, type StartingServer } from './http/server/starting-server.ts'
import { reloadTlsOnHangup } from './http/server/tls.ts'
import { forgetKeys } from './idempotency/kept-responses.ts'
import { completeMerges } from './identity/lead-links.ts'
import type { EmbeddedSource } from './instruments/gauges.ts'
import { createInstruments, instrumentStarter, type RunningInstruments } from './instruments/instruments.ts'
import { jobsFollower } from './jobs/run-jobs.ts'
import { keyFilePath, openMasterKeys } from './keys-at-rest/key-file.ts'
import { ensureMasterKey, rewrapAll, totalOf } from './keys-at-rest/keys-at-rest.ts'
import { ensureLedgerKey } from './ledger/keys.ts'
import { countEntries } from './ledger/ledger.ts'
import { ledgerFollower } from './ledger/seal.ts'
import { readLastBackup } from './operations/backups.ts'
import { ensureDefaultOrganization } from './organizations/organizations.ts'
import { createApp } from './process/app.ts'
import { type Background, repeat } from './process/background.ts'
import { type Config, loadConfig } from './process/config.ts'
import { describeFault } from './process/describe-fault.ts'
import { collectWhenIdle } from './process/idle-memory.ts'
import { createLogger, type Logger } from './process/logger.ts'
import type { Observer } from './process/observer.ts'
import { publishAddress } from './process/served-address.ts'
import { installShutdown } from './process/shutdown.ts'
import { version } from './process/version.ts'
import { firstSteps } from './process/welcome.ts'
import { followStarter, startWorkers, type Workers } from './process/workers.ts'
import { completeErasures } from './rights/erasure/erase-person.ts'
import { retentionRulesFollower } from './rights/lifetimes/run-rules.ts'
import { retentionFollower } from './rights/retention.ts'
import { segmentFollower } from './segments/segment-follower.ts'
import { deleteExpired } from './sessions/sessions.ts'
import { createStartLink } from './sessions/sign-in-link.ts'
import { viewsRenewal } from './sql-views/sql-views.ts'
import { createResolve, parseRanges } from './webhooks/addresses.ts'
import { type DeliveryOptions, webhookFollower } from './webhooks/deliver.ts'
import { forgetDeliveries, readWebhookStates } from './webhooks/deliveries.ts'
import { createSender } from './webhooks/send.ts'

/** The maximum time from SIGTERM to the exit. A worker must end shortly before the process that waits for it. */
const shutdownMs = 11_800
const workerShutdownMs = 200
/** The time for which requests are served after SIGTERM, so that a load balancer can first see /readyz fail. */
const drainServingMs = 1_000
const drainLimitMs = 11_300
/** PostgreSQL's statement_timeout exceeds the request's deadline by this time. */
const statementGraceMs = 1_000
const backfillIntervalMs = 1_000
const erasureIntervalMs = 5_000
const keyExpiryIntervalMs = 60_000
const deliveryExpiryIntervalMs = 600_000
const tokenUseIntervalMs = 30_000
const viewsRenewalIntervalMs = 1_000
const collectIntervalMs = 5_000

/**
 * Runs the service until a signal ends it: configuration, database, migrations, keys, listening, draining. With more
 * than one worker, this process manages the database, and each worker runs this program again and serves requests. With
 * `json`, standard output has one JSON value with the address, and the log goes to standard error.
 */
export async function serve(environment: NodeJS.ProcessEnv, { workers = 1, json = false } = {}): Promise<void> {
  const config = loadConfig(environment)
  const logger = await createLogger(config, json ? process.stderr : process.stdout)
  if (cluster.isPrimary) logger.info({ version, node: process.version }, 'kith is starting')
  const closing: StopFunctions = []
  let starting: Promise<Started> | undefined
  let stopped: Promise<void> | undefined
  const stopping = new AbortController()
  const stop = (hurried: AbortSignal) => {
    stopping.abort()
    stopped ??= closeAll(closing, starting, hurried, logger)
    return stopped
  }
  const limitMs = cluster.isWorker ? shutdownMs - workerShutdownMs : shutdownMs
  // Without a terminal, SIGHUP means a reload (`systemctl reload`). It must not end the service, even without TLS files
  // to reload.
  const isReload = config.tls !== undefined || !isatty(0)
  if (!config.tls && isReload) process.on('SIGHUP', () => logger.info('SIGHUP: there are no TLS files to read again'))
  const shutdown = installShutdown({ logger, skip: isReload ? ['SIGHUP'] : [], limitMs, stop })
  if (cluster.isWorker) followStarter(shutdown)
  try {
    const parts = { config, logger, closing, stopping: stopping.signal }
    const hasWorkers = cluster.isPrimary && workers > 1
    starting = hasWorkers ? startWithWorkers(workers, environment, parts) : start(parts)
    const { address, signInLink } = await starting
    if (cluster.isPrimary && config.databaseUrl === undefined)
      closing.push(await publishAddress(config.dataDir, address))
    if (cluster.isPrimary) logWelcome(address, signInLink, config, logger)
    if (cluster.isPrimary && json) process.stdout.write(`${JSON.stringify({ address })}\n`)
  } catch (error) {
    await stop(never)
    // A signal made the start fail, and the shutdown sets the exit code.
    if (shutdown.hasBegun) return
    shutdown.uninstall()
    // The open channel to the starting process would prevent the worker from ending.
    if (cluster.isWorker) cluster.worker?.disconnect()
    throw error
  }
}

/** A service that listens. `signInLink` signs in to the console, see {@link createStartLink}. */
type Started = { address: string; signInLink?: string | undefined }

/** Logs the address of the service, the link to the console and the first steps, at any log level. */
function logWelcome(address: string, signInLink: string | undefined, config: Config, logger: Logger) {
  const always = logger.child({}, { level: 'info' })
  always.info({ address, console: signInLink, ...firstSteps(address, config) }, `kith is ready at ${address}`)
}

/**
 * The functions that stop the parts of the service, in order of their start. Each one stops waiting when its signal
 * aborts.
 */
type StopFunctions = ((hurried: AbortSignal) => Promise<unknown>)[]

/** The context of a start. `stopping` aborts when the start should be cancelled. */
type StartContext = { config: Config; logger: Logger; closing: StopFunctions; stopping: AbortSignal }

const never = new AbortController().signal

/**
 * Stops all parts in reverse order. Neither a part that fails nor, after `hurried` aborts, a slow part prevents the
 * others from being stopped. The database stops last, and its end is always awaited.
 */
async function closeAll(
  closing: StopFunctions,
  starting: Promise<unknown> | undefined,
  hurried: AbortSignal,
  logger: Logger,
): Promise<void> {
  const hurry = hurried.aborted ? undefined : once(hurried, 'abort')
  await Promise.race([starting?.catch(() => {}), hurry])
  while (closing.length > 0) {
    const closed = closing.pop()!(hurried).catch(error =>
      logger.error({ fault: error.name, stack: error.stack }, 'a part of the service failed to stop'),
    )
    await (closing.length > 0 ? Promise.race([closed, hurry]) : closed)
  }
}

async function startWithWorkers(
  count: number,
  environment: NodeJS.ProcessEnv,
  starting: StartContext,
): Promise<Started> {
  const { config, logger, closing } = starting
  let workers: Workers | undefined
  // Each worker reloads the TLS files itself.
  if (config.tls) process.on('SIGHUP', () => workers?.hangUp())
  const storage = await openStorage(starting)
  instrumentStarter(storage)
  const db = openDatabase(storage.url, {
    connections: 1,
    statementTimeoutMs: config.limits.requestMs,
    masterKeys: openMasterKeys(config),
  })
  try {
    await prepareKeys(db, config, logger)
    // A worker connects to the embedded database by its address, so it has no data folder.
    const keyFile = keyFilePath(config)
    const keySetting = keyFile === undefined ? {} : { KITH_MASTER_KEY_FILE: keyFile }
    workers = await startWorkers(
      count,
      { ...environment, ...keySetting, DATABASE_URL: storage.url, KITH_ARCHIVE: '' },
      logger,
    )
    closing.push(hurried => workers!.stop(hurried))
    if (config.rates.store === 'memory' && (config.rates.read || config.rates.write))
      logger.warn(
        'KITH_RATE_STORE is memory: each worker counts its own requests, so the effective rates are multiplied by the number of workers',
      )
    const address = urlOf(workers.address, config)
    return { address, signInLink: await makeSignInLink(db, address, starting) }
  } finally {
    await db.close()
  }
}

async function start(starting: StartContext): Promise<Started> {
  const { config, logger, closing } = starting
  const tlsReload = config.tls && reloadTlsOnHangup(config.tls, logger)
  const storage = await openStorage(starting)
  closing.push(async () => tlsReload?.stop())
  const drain = createDrain()
  const instruments = await startInstruments(
    config,
    { ...storage, certificateEndsAt: tlsReload?.endsAt },
    logger,
    closing,
  )
  const isReader = config.role === 'reader'
  const statementTimeoutMs = config.limits.requestMs + statementGraceMs
  const { observer, readerObserver } = instruments
  const db = openDatabase(storage.url, {
    connections: config.databaseConnections,
    statementTimeoutMs,
    pagePatienceMs: config.limits.requestMs / 2,
    isReadOnly: isReader,
    observer,
    masterKeys: openMasterKeys(config),
    report: message => logger.warn(message),
  })
  closing.push(() => db.close())
  const accessLog = openAccessLog(config, db, observer, logger)
  closing.push(async () => accessLog?.stop())
  const { reads, reader, stop } = await startReads({ db, config, readerObserver, statementTimeoutMs, logger })
  closing.push(stop)
  const sender = createSender({ allowed: parseRanges(config.webhookAllow), resolve: createResolve() })
  let address: string | undefined
  const linkBase = () => (address === undefined ? undefined : findBaseUrl(address, config))
  const followers = followersOf(config, { sender, linkBase }, logger)
  instruments.watch({
    db,
    reader,
    standby: reads.standby,
    queues: () => queueLengths(db),
    followers: () => readFollowerLag(db, followers),
    webhooks: () => readWebhookStates(db),
    ledgerEntries: () => countEntries(db),
    lastBackup: () => readLastBackup(db),
  })
  await prepareKeys(db, config, logger)
  const keys = await loadKeys(db)
  const authenticator = createAuthenticator({ db, keys, config, report: problem => logger.warn(problem) })
  const rateLimiter = await startRateLimiter(config, db, logger)
  const app = createApp({ db, reads, config, authenticator, logger, drain, instruments, rateLimiter, accessLog })
  tlsReload?.apply(app.server as Server)
  address = await listen(app, config)
  const collecting = repeat(collectWhenIdle(), collectIntervalMs, error =>
    reportTask(logger, { task: 'collect' }, error),
  )
  closing.push(() => collecting.stop())
  closing.push(() => sender.close())
  const works = isReader
    ? []
    : [...startHousekeeping(config, { db, authenticator }, logger), startFollowers(db, followers, logger)]
  // The followers stop before the sender of webhooks.
  closing.push(() => Promise.all(works.map(work => work.stop())))
  closing.push(() => app.close())
  const patienceMs = Math.min(drainServingMs + config.limits.requestMs + drainGraceMs, drainLimitMs)
  closing.push(signal => app.drain({ servingMs: drainServingMs, patienceMs, signal }))
  return { address, signInLink: cluster.isPrimary ? await makeSignInLink(db, address, starting) : undefined }
}

/**
 * Creates the master key, the organization `default` and the signing keys if they do not exist. Wraps secrets that are
 * not wrapped yet.
 */
async function prepareKeys(db: Database, config: Config, logger: Logger): Promise<void> {
  await ensureMasterKey(db, config)
  if (config.role === 'reader') return
  await ensureDefaultOrganization(db)
  await loadOrCreateKeys(db)
  await ensureLedgerKey(db)
  // The starting process has wrapped everything for its workers.
  if (keyFilePath(config) === undefined || cluster.isWorker) return
  // The service also starts on a database that cannot store anything at the moment, such as a standby.
  const done = await rewrapAll(db).catch(error => reportTask(logger, { task: 'wrap keys' }, error))
  if (!done) return
  const { wrapped, lost } = done
  if (totalOf(wrapped) > 0) logger.info({ wrapped }, 'keys and secrets were wrapped by the master key')
  if (totalOf(lost) > 0) logger.warn({ lost }, 'keys and secrets do not open with the master key: run kith doctor')
}

/**
 * Makes the link that the start logs. The service also starts on a database that cannot store anything at the moment,
 * such as a standby.
 */
async function makeSignInLink(db: Database, address: string, { config, logger }: StartContext) {
  try {
    return await createStartLink(db, address, config)
  } catch (error) {
    const persistentMessage = persistentErrorMessage(error)
    if (persistentMessage !== undefined) logger.warnOfCondition(persistentMessage)
    else logger.warn(describeFault(error), 'the link to the console could not be made: run kith console')
    return undefined
  }
}

async function startInstruments(
  { traces }: Config,
  {
    embedded,
    certificateEndsAt,
  }: Pick<Storage, 'embedded'> & { certificateEndsAt: (() => Date | undefined) | undefined },
  logger: Logger,
  closing: StopFunctions,
): Promise<RunningInstruments> {
  // The tracing libraries are loaded only for traces.
  const report = (problem: string) => logger.warn(problem)
  const tracing = traces && (await import('./instruments/tracing.ts')).startTracing(traces, report)
  closing.push(async () => tracing?.stop())
  const instruments = createInstruments({ embedded, certificateEndsAt, tracer: tracing?.tracer })
  closing.push(async () => instruments.stop())
  return instruments
}

/** Opens the access log. A reader cannot write to its standby, so it logs that its reads are not recorded. */
function openAccessLog({ accessLog: mode, role }: Config, db: Database, observer: Observer, logger: Logger) {
  if (mode === 'off') return undefined
  if (role === 'primary') return new AccessLog({ db, mode, observer, report: problem => logger.warn(problem) })
  logger.warn('KITH_ROLE=reader stores nothing, so the reads of this process are not in the access log')
  return undefined
}

/** The libraries of rate limits are loaded only if a rate is configured. */
async function startRateLimiter({ rates }: Config, db: Database, logger: Logger): Promise<RateLimiter | undefined> {
  if (!rates.read && !rates.write) return undefined
  const { createRateLimiter } = await import('./http/overload/rate-limit.ts')
  return createRateLimiter({ rates, db, report: message => logger.warn(message) })
}

type Storage = { url: string; embedded?: EmbeddedSource }

/** The libraries of archives are loaded only if one is configured. */
async function startArchiving(archive: NonNullable<Config['archive']>, embedded: EmbeddedDatabase, logger: Logger) {
  const { startArchiver } = await import('./db/archive/archiver.ts')
  const { openStore } = await import('./db/archive/store.ts')
  const { url, dataDir: path } = embedded
  const log = (line: string) => logger.info({ component: 'archive' }, line)
  const warn = (line: string) => logger.warn({ component: 'archive' }, line)
  return startArchiver({ ...archive, url, path, store: openStore(archive.address), log, warn })
}

async function openStorage({ config, logger, closing, stopping }: StartContext): Promise<Storage> {
  if (config.databaseUrl) await waitForDatabase(config.databaseUrl, config, logger, stopping)
  const openEmbedded = async () => {
    const log = (line: string) => logger.info({ component: 'postgresql' }, line)
    const { dataDir, archive } = config
    const archives = archive !== undefined
    const embedded = await startEmbedded({ dataDir, purpose: 'serve', log, signal: stopping, archives })
    let archiver: Archiver | undefined
    closing.push(async () => {
      await archiver?.finish()
      // PostgreSQL completes its last segment when it stops.
      await embedded.stop()
      await archiver?.stop()
    })
    if (archive) archiver = await startArchiving(archive, embedded, logger)
    return { url: embedded.url, embedded: { ...embedded, archiveAgeSeconds: archiver?.ageSeconds } }
  }
  const storage = config.databaseUrl ? { url: config.databaseUrl } : await openEmbedded()
  // The starting process has migrated the database. A worker that is replaced during a rolling upgrade runs on the
  // newer tables.
  if (cluster.isWorker) return storage
  if (config.role === 'reader') {
    await requireMigrated(storage.url)
    return storage
  }
  const ran = await migrate(storage.url)
  if (ran.length > 0) logger.info({ migrations: ran }, 'migrated')
  if (config.databaseUrl) await warnOfPendingTables(storage.url, logger)
  return storage
}

/**
 * Waits for the server of DATABASE_URL. Meanwhile `/healthz` answers, so that a supervisor does not restart the
 * process, and all other requests get a 503. The starting process answers for its workers.
 */
async function waitForDatabase(url: string, config: Config, logger: Logger, signal: AbortSignal): Promise<void> {
  let server: StartingServer | undefined
  const onFailure = async (problem: string) => {
    if (cluster.isPrimary) server ??= await listenWhileStarting(config).catch(throwPortProblem(config))
    logger.warn(server && { address: urlOf(server, config) }, `${problem} kith waits for it.`)
  }
  try {
    await waitForServer(url, { patienceMs: config.databaseWaitSeconds * 1_000, signal, onFailure })
  } finally {
    await server?.close()
  }
}

/**
 * Warns if Citus does not distribute all tables. The start continues, because kith can serve requests that do not need
 * the others.
 */
async function warnOfPendingTables(url: string, logger: Logger): Promise<void> {
  // A database that does not answer makes the next step of the start fail with a clear error.
  const pending = await findPending(url).catch(() => undefined)
  if (pending) logger.warn(`${pending}: stop the service, and run kith distribute`)
}

const listen = (app: App, { host, port }: Config): Promise<string> =>
  app.listen({ host, port }).catch(throwPortProblem({ host, port }))

const throwPortProblem =
  ({ host, port }: Pick<Config, 'host' | 'port'>) =>
  (error: NodeJS.ErrnoException): never => {
    if (error.code === 'EADDRINUSE')
      throw new Error(`PORT ${port} on ${host} is taken by another program. Set PORT to a free port.`)
    if (error.code === 'EACCES')
      throw new Error(`PORT ${port} may not be opened by this user. Set PORT to a port above 1023.`)
    throw error
  }

function urlOf({ address, port }: Pick<AddressInfo, 'address' | 'port'>, { tls }: Config): string {
  return `${tls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

/** Logs the failure of a background task. */
function reportTask(logger: Logger, task: object, error: unknown) {
  const persistentMessage = persistentErrorMessage(error)
  if (persistentMessage !== undefined) return logger.warnOfCondition(persistentMessage)
  const { stack, ...fault } = describeFault(error)
  logger.warn({ ...task, ...fault }, 'a background task failed and will be retried')
}

/**
 * Starts the background tasks. They backfill the indexes of attributes that were declared after their values were
 * stored, complete long erasures and merges, and renew views for SQL. They also store when tokens were used, and delete
 * expired Idempotency-Keys, sessions, codes and tokens, and old webhook deliveries.
 */
function startHousekeeping(
  { ledgerOrigin }: Config,
  { db, authenticator }: { db: Database; authenticator: Authenticator },
  logger: Logger,
): Background[] {
  const report = (task: string) => (error: unknown) => reportTask(logger, { task }, error)
  return [
    repeat(signal => backfillIndexes(db, { signal }), backfillIntervalMs, report('fill')),
    repeat(signal => completeErasures(db, ledgerOrigin, { signal }), erasureIntervalMs, report('complete erasures')),
    repeat(signal => completeMerges(db, { signal }), erasureIntervalMs, report('complete merges')),
    repeat(signal => forgetKeys(db, { signal }), keyExpiryIntervalMs, report('forget')),
    repeat(() => deleteExpired(db), keyExpiryIntervalMs, report('delete expired sessions')),
    repeat(() => deleteExpiredTokens(db), deliveryExpiryIntervalMs, report('delete expired tokens')),
    repeat(viewsRenewal(db), viewsRenewalIntervalMs, report('renew views')),
    repeat(tokenUses(db, authenticator), tokenUseIntervalMs, report('store the use of tokens')),
    repeat(signal => forgetDeliveries(db, { signal }), deliveryExpiryIntervalMs, report('forget deliveries')),
  ]
}

/** The followers of the change log. */
function followersOf(
  { ledgerOrigin, logRetentionDays, segmentClockMs, accessLogRetentionDays, limits }: Config,
  sending: Pick<DeliveryOptions, 'sender' | 'linkBase'>,
  logger: Logger,
): Follower[] {
  const onDisabled = (webhook: object) =>
    logger.warn(webhook, 'a webhook was disabled, because its receiver accepts nothing')
  return [
    webhookFollower({ ...sending, onDisabled }),
    ledgerFollower({ originName: ledgerOrigin }),
    retentionFollower({ logRetentionDays }),
    accessFollower({ retentionDays: accessLogRetentionDays }),
    retentionRulesFollower({ originName: ledgerOrigin }),
    jobsFollower({ originName: ledgerOrigin, limits }),
    segmentFollower({ clockMs: segmentClockMs }),
    searchFollower(),
    addressAnswersFollower(),
  ]
}

function startFollowers(db: Database, followers: Follower[], logger: Logger): Followers {
  const report = (error: unknown, failure?: object) => reportTask(logger, { task: 'follow', ...failure }, error)
  const following = createFollowers(db, followers, { report })
  following.start()
  return following
}
