import { hash } from 'node:crypto'
import { RateLimiterRes } from 'rate-limiter-flexible'
import type { Caller } from '../../auth/caller.ts'
import type { Budget, Rates } from '../../config.ts'
import type { Database } from '../../db/db.ts'
import { Fault, refuse } from '../../errors.ts'
import { type Counter, memoryStore, postgresqlStore, redisStore, type Store } from './rate-store.ts'

type Name = 'read' | 'write'

/** The headers of an answer: `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10. */
export type RateHeaders = Record<string, string>

export type RateLimiter = {
  /**
   * Takes one request of the caller's budget and gives the headers that tell what is left; none where that budget is not
   * limited. Throws a Fault of 429 with `Retry-After` when nothing is left.
   */
  spend(caller: Caller, name: Name): Promise<RateHeaders>
  close(): Promise<void>
}

type Asked = { rates: Rates; db: Database; report: (message: string) => void }

/** The limiter of a service; undefined where no rate is configured: nothing is counted then. */
export async function createRateLimiter({ rates, db, report }: Asked): Promise<RateLimiter | undefined> {
  if (!rates.read && !rates.write) return undefined
  const store = await openStore(rates.store, db)
  const limit = (name: Name, budget: Budget | undefined) => budget && limitOf(name, budget, store, report)
  const limits = { read: limit('read', rates.read), write: limit('write', rates.write) }
  return {
    spend: async (caller, name) => (await limits[name]?.(keyOf(caller))) ?? {},
    close: () => store.close(),
  }
}

function openStore(store: string, db: Database): Store | Promise<Store> {
  if (store === 'memory') return memoryStore()
  return store === 'postgresql' ? postgresqlStore(db) : redisStore(store)
}

const keys = new WeakMap<Caller, string>()

/** A subject may be long, and somebody's address. The authenticator gives the same caller for the same token. */
function keyOf(caller: Caller): string {
  const known = keys.get(caller)
  if (known !== undefined) return known
  const key = hash('sha256', `${caller.organization.id} ${caller.subject}`, 'base64url')
  keys.set(caller, key)
  return key
}

function limitOf(name: Name, budget: Budget, store: Store, report: Asked['report']) {
  const counter = insured(store.counter(name, budget), memoryStore().counter(name, budget), report)
  const policy = `"${name}";q=${budget.perSecond};w=1${budget.burst > 0 ? `;kith-burst=${budget.burst}` : ''}`
  const headersOf = ({ remainingPoints, msBeforeNext }: RateLimiterRes): RateHeaders => ({
    'RateLimit-Policy': policy,
    RateLimit: `"${name}";r=${remainingPoints};t=${Math.ceil(msBeforeNext / 1_000)}`,
  })
  return async (key: string): Promise<RateHeaders> => {
    try {
      return headersOf(await counter.consume(key))
    } catch (spent) {
      if (!(spent instanceof RateLimiterRes)) throw spent
      throw new Fault(refused(name, spent, headersOf(spent)))
    }
  }
}

function refused(name: Name, { msBeforeNext }: RateLimiterRes, headers: RateHeaders) {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1_000))
  return refuse('rate_limit_exceeded', `There were too many ${name} requests; the next is taken in ${seconds} s.`, {
    headers: { 'Retry-After': String(seconds), ...headers },
  })
}

// A store that is away is asked again as seldom as this.
const askAgainMs = 1_000

/** Counts in this process while the store is away: that nobody can count together refuses no one, and lets no one loose. */
function insured(shared: Counter, own: Counter, report: Asked['report']): Counter {
  let awayUntilMs = 0
  return {
    consume: async key => {
      if (Date.now() < awayUntilMs) return own.consume(key)
      try {
        const left = await shared.consume(key)
        if (awayUntilMs > 0) report('the store of the rate limits answers again')
        awayUntilMs = 0
        return left
      } catch (error) {
        if (error instanceof RateLimiterRes) throw error
        if (awayUntilMs === 0) report('the store of the rate limits is away: each process counts by itself meanwhile')
        awayUntilMs = Date.now() + askAgainMs
        return own.consume(key)
      }
    },
  }
}
