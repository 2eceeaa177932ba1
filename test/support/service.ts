import { afterAll, beforeAll } from 'vitest'
import { type Client, createClient } from '../../client/index.ts'
import { AccessLog } from '../../src/accesses/access-log.ts'
import { type Authenticator, createAuthenticator } from '../../src/auth/authenticator.ts'
import { loadOrCreateKeys } from '../../src/auth/keys/keys.ts'
import { type DatabasePool, openDatabase, statement } from '../../src/db/db.ts'
import { queueLengths } from '../../src/entities/write/request-coalescing.ts'
import { readFollowerLag } from '../../src/followers/followers.ts'
import { createRateLimiter } from '../../src/http/overload/rate-limit.ts'
import { createDrain } from '../../src/http/server/drain.ts'
import { createInstruments } from '../../src/instruments/instruments.ts'
import { openMasterKeys } from '../../src/keys-at-rest/key-file.ts'
import { ensureLedgerKey } from '../../src/ledger/keys.ts'
import { countEntries } from '../../src/ledger/ledger.ts'
import { ledgerFollower } from '../../src/ledger/seal.ts'
import { readLastBackup } from '../../src/operations/backups.ts'
import { createOrganization, ensureDefaultOrganization } from '../../src/organizations/organizations.ts'
import { createApp, openApiDocument } from '../../src/process/app.ts'
import { type Config, loadConfig } from '../../src/process/config.ts'
import { loggerTo } from '../../src/process/logger.ts'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import { readWebhookStates } from '../../src/webhooks/deliveries.ts'
import { createSender } from '../../src/webhooks/send.ts'
import { createContractCheck } from './contract.ts'
import { createTestDatabase } from './database.ts'

export const allScopes =
  'people:read people:write people:erase records:read records:write consents:read schema:read schema:write changes:read exports:read webhooks:read webhooks:write access:read access:write operations:read'

export type Reply = {
  status: number
  headers: Headers
  /** The whole envelope. */
  body: {
    status?: string
    // biome-ignore lint/suspicious/noExplicitAny: tests read any field of a response
    data?: any
    error?: string
    errorstack?: { reason: string; request_id: string } | null
    message?: string
    details?: { path: string; message: string }[]
    reason?: string
    outcome?: string
    request_id?: string
  }
}

export type Send = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>

/** A tenant of one test, with the typed client, and a sender for requests that the client would not send. */
export type Organization = { id: number; key: string; token: string; client: Client; send: Send }

export type Service = {
  address: string
  databaseUrl: string
  config: Config
  db: DatabasePool
  /** The log lines of the service. */
  logs: string[]
  /** Creates an organization with its clients, so that tests do not affect each other. */
  organization(key?: string): Promise<Organization>
  tokenFor(organizationKey: string, scope?: string, subject?: string): Promise<string>
  sender(token: string): Send
  /** Checks a response that a test fetched itself against the OpenAPI document. Throws if they differ. */
  checkResponse: ReturnType<typeof createContractCheck>
  /** Runs SQL directly on the service's database. */
  authenticator: Authenticator
  sql<R extends Record<string, unknown>>(text: string, values?: unknown[]): Promise<R[]>
  stop(): Promise<void>
}

// The keys have one length, because tests compare the lengths of responses.
let organizations = 1_000

/** The checks by configuration. A check compiles each schema once, and most services of a worker have the same configuration. */
const contractChecks = new Map<string, Service['checkResponse']>()

/** Every response of the suite is checked against the OpenAPI document. */
function contractCheckOf(config: Config): Service['checkResponse'] {
  const key = JSON.stringify(config)
  const check = contractChecks.get(key) ?? createContractCheck(() => openApiDocument({ config }))
  contractChecks.set(key, check)
  return check
}

/**
 * Starts the whole service in this process, on a free port, and on a new database unless one is given. `wrap` may change what the
 * service learns from a token.
 */
export async function startService(
  environment: Record<string, string> = {},
  databaseUrl?: string,
  wrap = (authenticator: Authenticator) => authenticator,
): Promise<Service> {
  const database = databaseUrl ? { url: databaseUrl, drop: async () => {} } : await createTestDatabase()
  // Tests compare whole tables, and the access log is written behind the answers.
  const config = loadConfig({ KITH_ACCESS_LOG: 'off', ...environment })
  const instruments = createInstruments()
  const db = openDatabase(database.url, {
    connections: config.databaseConnections,
    statementTimeoutMs: config.limits.requestMs + 1_000,
    pagePatienceMs: config.limits.requestMs / 2,
    observer: instruments.observer,
    masterKeys: openMasterKeys({ ...config, databaseUrl: database.url }),
  })
  const logs: string[] = []
  const logger = loggerTo(line => logs.push(line), 'info')
  const sender = createSender({ allowed: [], resolve: async () => [] })
  const followers = [webhookFollower({ sender }), ledgerFollower({ originName: config.ledgerOrigin })]
  instruments.watch({
    db,
    standby: () => undefined,
    queues: () => queueLengths(db),
    followers: () => readFollowerLag(db, followers),
    webhooks: () => readWebhookStates(db),
    ledgerEntries: () => countEntries(db),
    lastBackup: () => readLastBackup(db),
  })
  await ensureDefaultOrganization(db)
  await ensureLedgerKey(db)
  const authenticator = wrap(createAuthenticator({ db, keys: await loadOrCreateKeys(db), config }))
  const report = (message: string) => logger.warn(message)
  const rateLimiter = await createRateLimiter({ rates: config.rates, db, report })
  const { accessLog: mode } = config
  const accessLog = mode === 'off' ? undefined : new AccessLog({ db, mode, observer: instruments.observer, report })
  const shared = { db, config, authenticator, logger, instruments, rateLimiter, accessLog }
  const app = createApp({ ...shared, drain: createDrain() })
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  const checkResponse = contractCheckOf(config)
  const tokenFor = async (organizationKey: string, scope = allScopes, subject = 'tests') =>
    authenticator.issueToken({ organizationKey, scope, subject, ttlSeconds: 400 * 86_400 })
  return {
    address,
    databaseUrl: database.url,
    config,
    db,
    logs,
    tokenFor,
    authenticator,
    checkResponse,
    sender: token => senderTo(address, token, checkResponse),
    async organization(key = `org_${process.pid}_${++organizations}`) {
      const { id } = await createOrganization(db, key)
      const token = await tokenFor(key)
      const client = createClient({ url: address, token, fetch: createCheckedFetch(checkResponse), retries: 0 })
      return { id, key, token, client, send: senderTo(address, token, checkResponse) }
    },
    sql: (text, values = []) => db.query(statement('', text), values) as never,
    async stop() {
      await app.close()
      await accessLog?.stop()
      instruments.stop()
      await db.close()
      await database.drop()
    },
  }
}

let shared: Promise<Service> | undefined

/**
 * The service of the worker, which its files share: each test has organizations of its own. A file uses {@link useOwnService} if it changes
 * what all organizations share, counts what belongs to all, or lets followers and backfills work, which work for all organizations. The service ends with the worker.
 */
export function useService(): Service {
  const service = {} as Service
  beforeAll(async () => {
    shared ??= startService()
    Object.assign(service, await shared)
  })
  return service
}

/** Starts a service with a database of its own before the tests of the file or the `describe`, and stops it after them. */
export function useOwnService(environment: Record<string, string> = {}): Service {
  const service = {} as Service
  beforeAll(async () => {
    Object.assign(service, await startService(environment))
  })
  // Undefined if the start failed.
  afterAll(() => service.stop?.())
  return service
}

/** A `fetch` that checks every response against the OpenAPI document. */
function createCheckedFetch(checkResponse: ReturnType<typeof createContractCheck>): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const isStream = isNdjson(response) || response.headers.get('Content-Type') === 'text/event-stream'
    if (isStream || isPlain(response)) return response
    const body = await response.clone().json()
    checkResponse({
      method: init?.method ?? 'GET',
      path: new URL(String(input)).pathname,
      status: response.status,
      body,
    })
    return response
  }
}

function senderTo(address: string, token: string, checkResponse: ReturnType<typeof createContractCheck>): Send {
  return async (method, path, body, headers = {}) => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(`${address}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
    })
    const { status, headers: responseHeaders } = response
    if (isPlain(response)) return readPlain(response)
    const text = await response.text()
    if (isNdjson(response)) {
      const lines = text.split('\n').filter(Boolean)
      for (const line of lines)
        checkResponse({ method, path, status, body: JSON.parse(line), contentType: 'application/x-ndjson' })
      return { status, headers: responseHeaders, body: { data: lines.map(line => JSON.parse(line)) } }
    }
    const reply = { status, headers: responseHeaders, body: text === '' ? {} : JSON.parse(text) }
    checkResponse({ method, path, ...reply })
    return reply
  }
}

/** Whether the body of a success is neither JSON nor lines of JSON. */
const isPlain = ({ headers }: Response) =>
  /^(text\/(plain|html)|application\/octet-stream)/.test(headers.get('Content-Type') ?? '')

/** The bytes of a body that is not JSON, as the data of a reply. */
async function readPlain(response: Response): Promise<Reply> {
  const data = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, body: { data } }
}

/** Whether a response is NDJSON: lines that are JSON documents. */
const isNdjson = ({ headers }: Response) => headers.get('Content-Type') === 'application/x-ndjson'
