import { hash } from 'node:crypto'
import { BurstyRateLimiter, RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { networkOf } from '../../auth/login-throttle.ts'
import { type Database, statement } from '../../db/db.ts'
import type { Budget, Rates } from '../../process/config.ts'
import type { Caller } from '../../route/caller.ts'
import { createRefusal, Fault } from '../../values/errors.ts'

type BudgetName = 'read' | 'write' | 'page'

/** The headers of a response: `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10. */
export type RateHeaders = Record<string, string>

export type RateLimiter = NonNullable<ReturnType<typeof createRateLimiter>>

type RateLimiterOptions = { rates: Omit<Rates, 'pages'>; db: Database; report: (message: string) => void }

/** Creates the limiter of a service. Returns undefined if no rate is configured. */
export function createRateLimiter({ rates, db, report }: RateLimiterOptions) {
  if (!rates.read && !rates.write) return undefined
  const store = rates.store === 'memory' ? memoryStore : postgresqlStore(db)
  const limit = (name: 'read' | 'write', budget: Budget | undefined) =>
    budget && createLimit(name, budget, store, report)
  const limits = { read: limit('read', rates.read), write: limit('write', rates.write) }
  return {
    /**
     * Takes one request from the caller's budget. Returns the headers with the remaining budget, or none if the budget
     * is unlimited. Throws a Fault of 429 with `Retry-After` if the budget is used up.
     */
    spend: async (caller: Caller, name: 'read' | 'write'): Promise<RateHeaders> =>
      (await limits[name]?.(keyOf(caller))) ?? {},
  }
}

/**
 * Creates the limiter of the pages, which takes one request from the budget of a client's network. Throws a Fault of
 * 429 with `Retry-After` if the budget is used up. It counts in this process, so that a page needs no statement for its
 * limit.
 */
export function createPageLimiter(budget: Budget): (address: string) => Promise<RateHeaders> {
  const spend = createLimit('page', budget, memoryStore, () => {})
  return address => spend(networkOf(address))
}

/** The key of a caller. It is a hash, because a subject may be long, or an email address. */
const keyOf = ({ organization, credential }: Caller): string =>
  hash('sha256', `${organization.id} ${credential.budget}`, 'base64url')

function createLimit(name: BudgetName, budget: Budget, store: Store, report: RateLimiterOptions['report']) {
  const counter = withFallback(store(name, budget), memoryStore(name, budget), report)
  const policy = `"${name}";q=${budget.perSecond};w=1${budget.burst > 0 ? `;kith-burst=${budget.burst}` : ''}`
  const headersOf = ({ remainingPoints, msBeforeNext }: RateLimiterRes): RateHeaders => ({
    'RateLimit-Policy': policy,
    RateLimit: `"${name}";r=${remainingPoints};t=${Math.ceil(msBeforeNext / 1_000)}`,
  })
  return async (key: string): Promise<RateHeaders> => {
    try {
      return headersOf(await counter.consume(key))
    } catch (result) {
      if (!(result instanceof RateLimiterRes)) throw result
      throw new Fault(buildRefusal(name, result, headersOf(result)))
    }
  }
}

function buildRefusal(name: BudgetName, { msBeforeNext }: RateLimiterRes, headers: RateHeaders) {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1_000))
  return createRefusal('rate_limit_exceeded', `There were too many ${name} requests. Retry after ${seconds} s.`, {
    headers: { 'Retry-After': String(seconds), ...headers },
  })
}

// The interval between attempts to use a store that is unavailable.
const retryStoreMs = 1_000

/**
 * Counts in this process while the shared store is unavailable, so that an outage neither refuses requests nor lifts
 * the limit.
 */
function withFallback(shared: Counter, local: Counter, report: RateLimiterOptions['report']): Counter {
  let unavailableUntilMs = 0
  return {
    consume: async key => {
      if (Date.now() < unavailableUntilMs) return local.consume(key)
      try {
        const result = await shared.consume(key)
        if (unavailableUntilMs > 0) report('the rate limit store is available again')
        unavailableUntilMs = 0
        return result
      } catch (error) {
        if (error instanceof RateLimiterRes) throw error
        if (unavailableUntilMs === 0) report('the rate limit store is unavailable: each process counts by itself')
        unavailableUntilMs = Date.now() + retryStoreMs
        return local.consume(key)
      }
    },
  }
}

/**
 * Takes one request from a key's budget. Rejects with a RateLimiterRes if the budget is used up, or with an Error if
 * the store fails.
 */
type Counter = { consume(key: string): Promise<RateLimiterRes> }

/** Creates a counter of one store. */
type Store = (name: string, budget: Budget) => Counter

type Options = { keyPrefix: string; points: number; duration: number }

/** The time after which the budget of a burst is full again, in seconds. */
const burstSeconds = 60

// The timeout of a statement of the store, so that a slow store does not delay requests.
const storeTimeoutMs = 250

/** Counts in this process. */
const memoryStore: Store = (name, budget) => withBurst(options => new RateLimiterMemory(options), name, budget)

/**
 * Counts in the table rate_limits, for all processes on one database, with one statement per request and two within a
 * burst.
 */
function postgresqlStore(db: Database): Store {
  const client = {
    query: async (query: { name: string; text: string; values: unknown[] }) => ({
      rows: await db.query(statement(query.name, query.text), query.values, AbortSignal.timeout(storeTimeoutMs)),
    }),
  }
  const settings = { storeClient: client, storeType: 'client', tableName: 'rate_limits', tableCreated: true }
  return (name, budget) =>
    // A used-up budget is refused from memory until its window ends, so that a flood of requests causes no flood of
    // statements.
    withBurst(
      options => new RateLimiterPostgres({ ...options, ...settings, inMemoryBlockOnConsumed: options.points + 1 }),
      name,
      budget,
    )
}

function withBurst(make: (options: Options) => Counter, name: string, { perSecond, burst }: Budget): Counter {
  const rate = make({ keyPrefix: name, points: perSecond, duration: 1 })
  if (burst === 0) return rate
  const burstLimiter = make({ keyPrefix: `${name}-burst`, points: burst, duration: burstSeconds })
  return new BurstyRateLimiter(rate as never, burstLimiter as never)
}
