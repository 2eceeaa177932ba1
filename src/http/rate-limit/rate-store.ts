import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRedis,
  type RateLimiterRes,
} from 'rate-limiter-flexible'
import type { Budget } from '../../config.ts'
import { type Database, statement } from '../../db/db.ts'

/**
 * Takes one request from a key's budget. Rejects with a RateLimiterRes if the budget is used up, or with an Error if
 * the store fails.
 */
export type Counter = { consume(key: string): Promise<RateLimiterRes> }

/** Makes the counters of one store. */
export type Store = { counter(name: string, budget: Budget): Counter; close(): Promise<void> }

type Options = { keyPrefix: string; points: number; duration: number }

/** The time after which the budget of a burst is full again, in seconds. */
const burstSeconds = 60

// The timeout of a statement or command of the store. A slow store must not delay requests.
const storeTimeoutMs = 250

/** Counts in this process. */
export function memoryStore(): Store {
  return {
    counter: (name, budget) => withBurst(options => new RateLimiterMemory(options), name, budget),
    close: doNothing,
  }
}

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
  return {
    counter: (name, budget) =>
      // A used-up budget is refused from memory until its window ends, so that a flood of requests is no flood of
      // statements.
      withBurst(
        options => new RateLimiterPostgres({ ...options, ...settings, inMemoryBlockOnConsumed: options.points + 1 }),
        name,
        budget,
      ),
    close: doNothing,
  }
}

/** The part of ioredis that kith uses. ioredis is not a dependency. */
type Redis = { on(event: 'error', listener: () => void): void; connect(): Promise<void>; disconnect(): void }
type RedisModule = { Redis: new (url: string, options: object) => Redis }

const redisOptions = {
  lazyConnect: true,
  connectTimeout: 1_000,
  commandTimeout: storeTimeoutMs,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
}

/** Counts in Redis. Throws an Error if the package `ioredis` is not installed. */
export async function redisStore(url: string): Promise<Store> {
  const { Redis } = await importRedis()
  const client = new Redis(url, redisOptions)
  // A fault shows when a command fails. Without a listener, an error event ends the process.
  client.on('error', () => {})
  // The client keeps reconnecting by itself.
  await client.connect().catch(() => {})
  return {
    counter: (name, budget) =>
      withBurst(
        options =>
          new RateLimiterRedis({ ...options, storeClient: client, inMemoryBlockOnConsumed: options.points + 1 }),
        `kith:${name}`,
        budget,
      ),
    close: async () => client.disconnect(),
  }
}

async function importRedis(): Promise<RedisModule> {
  // Not a literal, so that the type check does not need the package either.
  const name: string = 'ioredis'
  try {
    return (await import(name)) as RedisModule
  } catch (cause) {
    throw new Error(
      'KITH_RATE_STORE names Redis, which needs the package ioredis. Run: npm install --no-save ioredis',
      {
        cause,
      },
    )
  }
}

function withBurst(make: (options: Options) => Counter, name: string, { perSecond, burst }: Budget): Counter {
  const rate = make({ keyPrefix: name, points: perSecond, duration: 1 })
  if (burst === 0) return rate
  const burstLimiter = make({ keyPrefix: `${name}-burst`, points: burst, duration: burstSeconds })
  return new BurstyRateLimiter(rate as never, burstLimiter as never)
}

async function doNothing() {}
