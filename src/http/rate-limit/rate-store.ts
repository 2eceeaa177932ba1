import { BurstyRateLimiter, RateLimiterMemory, RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible'
import type { Budget } from '../../config.ts'
import { type Database, statement } from '../../db/db.ts'

/**
 * Takes one request from a key's budget. Rejects with a RateLimiterRes if the budget is used up, or with an Error if
 * the store fails.
 */
export type Counter = { consume(key: string): Promise<RateLimiterRes> }

/** Makes a counter of one store. */
export type Store = (name: string, budget: Budget) => Counter

type Options = { keyPrefix: string; points: number; duration: number }

/** The time after which the budget of a burst is full again, in seconds. */
const burstSeconds = 60

// The timeout of a statement of the store. A slow store must not delay requests.
const storeTimeoutMs = 250

/** Counts in this process. */
export const memoryStore: Store = (name, budget) => withBurst(options => new RateLimiterMemory(options), name, budget)

/**
 * Counts in the table rate_limits, for all processes on one database, with one statement per request and two within a
 * burst.
 */
export function postgresqlStore(db: Database): Store {
  const client = {
    query: async (query: { name: string; text: string; values: unknown[] }) => ({
      rows: await db.query(statement(query.name, query.text), query.values, AbortSignal.timeout(storeTimeoutMs)),
    }),
  }
  const settings = { storeClient: client, storeType: 'client', tableName: 'rate_limits', tableCreated: true }
  return (name, budget) =>
    // A used-up budget is refused from memory until its window ends, so that a flood of requests is no flood of
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
