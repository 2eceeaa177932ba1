import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRedis,
  type RateLimiterRes,
} from 'rate-limiter-flexible'
import type { Budget } from '../../config.ts'
import { type Database, statement } from '../../db/db.ts'

/** Takes one request of a key's budget. Rejects with a RateLimiterRes when none is left, with an Error without the store. */
export type Counter = { consume(key: string): Promise<RateLimiterRes> }

/** Makes the counters of one store. */
export type Store = { counter(name: string, budget: Budget): Counter; close(): Promise<void> }

type Options = { keyPrefix: string; points: number; duration: number }

/** A burst's budget is whole again after so long. */
export const burstSeconds = 60

// A statement or command that takes longer than this is not waited for: the request has better things to do.
const storePatienceMs = 250

/** Counts in this process. */
export function memoryStore(): Store {
  return { counter: (name, budget) => bursty(options => new RateLimiterMemory(options), name, budget), close: nothing }
}

/** Counts in the table rate_limits, for all processes on one database: a statement a request, two within a burst. */
export function postgresqlStore(db: Database): Store {
  const client = {
    query: async (query: { name: string; text: string; values: unknown[] }) => ({
      rows: await db.query(statement(query.name, query.text), query.values, AbortSignal.timeout(storePatienceMs)),
    }),
  }
  const settings = { storeClient: client, storeType: 'client', tableName: 'rate_limits', tableCreated: true }
  return {
    counter: (name, budget) =>
      // Who has spent all is refused from memory until the window ends: a flood is no flood of statements.
      bursty(
        options => new RateLimiterPostgres({ ...options, ...settings, inMemoryBlockOnConsumed: options.points + 1 }),
        name,
        budget,
      ),
    close: nothing,
  }
}

/** What we use of ioredis, which is not among the packages that come along. */
type Redis = { on(event: 'error', listener: () => void): void; connect(): Promise<void>; disconnect(): void }
type RedisModule = { Redis: new (url: string, options: object) => Redis }

const redisOptions = {
  lazyConnect: true,
  connectTimeout: 1_000,
  commandTimeout: storePatienceMs,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
}

/** Counts in Redis. Throws where the package `ioredis`, which only this needs, is not installed. */
export async function redisStore(url: string): Promise<Store> {
  const { Redis } = await importRedis()
  const client = new Redis(url, redisOptions)
  // What is wrong shows when it is asked; without a listener it would end the process.
  client.on('error', () => {})
  // It goes on trying by itself.
  await client.connect().catch(() => {})
  return {
    counter: (name, budget) =>
      bursty(
        options =>
          new RateLimiterRedis({ ...options, storeClient: client, inMemoryBlockOnConsumed: options.points + 1 }),
        `kith:${name}`,
        budget,
      ),
    close: async () => client.disconnect(),
  }
}

async function importRedis(): Promise<RedisModule> {
  // Not a literal: the package need not be there for the types either.
  const name: string = 'ioredis'
  try {
    return (await import(name)) as RedisModule
  } catch (cause) {
    throw new Error('KITH_RATE_STORE names Redis, which needs a package more: run npm install --no-save ioredis', {
      cause,
    })
  }
}

function bursty(make: (options: Options) => Counter, name: string, { perSecond, burst }: Budget): Counter {
  const rate = make({ keyPrefix: name, points: perSecond, duration: 1 })
  if (burst === 0) return rate
  const beyond = make({ keyPrefix: `${name}-burst`, points: burst, duration: burstSeconds })
  return new BurstyRateLimiter(rate as never, beyond as never)
}

async function nothing() {}
