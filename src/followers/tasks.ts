import { randomUUID } from 'node:crypto'
import type { Database } from '../db/db.ts'
import { KeyedSemaphore } from '../db/keyed-semaphore.ts'
import { describeFault } from '../describe-fault.ts'
import type { Signal } from '../signal.ts'
import type { Follower, Task } from './follower.ts'
import { keepLease, type Lease, LeaseLost } from './lease.ts'
import {
  advanceFollowerSql,
  claimFollowerSql,
  holdLeaseSql,
  insertFollowerSql,
  recordFailureSql,
  releaseFollowerSql,
} from './sql.ts'

/** A follower that has something to do in an organization. If its row is missing, it has never worked there. */
export type Found = { organization_id: number; name: string; id: number; missing: boolean }

export type TaskOptions = {
  /** Receives each failure of a follower with its name and organization, and each failed statement about a task. */
  report(error: unknown, failure?: { follower: string; organization_id: number; id: number; failures: number }): void
  nowMs: () => number
  leaseMs: number
}

type Claim = { sequence: number; failures: number; head: number }

/** Followers use at most two connections of a process, so that they delay no requests. */
const maxConnections = 2
const firstBackoffMs = 1_000
const maxBackoffMs = 300_000

const permits = new KeyedSemaphore<'followers'>(maxConnections)

/** The database with the connections that followers may use. */
function limitConnections(db: Database): Database {
  const run = <T>(work: () => Promise<T>, signal?: Signal) => permits.run(db, 'followers', signal, work)
  return {
    ...db,
    root: db.root ?? db,
    query: (statement, values, signal) => run(() => db.query(statement, values, signal), signal) as never,
    transaction: (work, options) => run(() => db.transaction(work, options), options?.signal),
  }
}

/** A time as a value of a statement. */
export const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

/** The tasks that run in this process, each under a lease. */
export class Tasks {
  readonly #db: Database
  readonly #limited: Database
  readonly #byName: Map<string, Follower>
  readonly #options: TaskOptions
  readonly #owner = randomUUID()
  readonly #running = new Map<string, { name: string; done: Promise<void>; stop(): void }>()
  #isStopping = false

  constructor(db: Database, followers: readonly Follower[], options: TaskOptions) {
    this.#db = db
    this.#limited = limitConnections(db)
    this.#byName = new Map(followers.map(follower => [follower.name, follower]))
    this.#options = options
  }

  get count(): number {
    return this.#running.size
  }

  /** How many more tasks of this follower may start. */
  countFree({ name, maxConcurrent }: Follower): number {
    return maxConcurrent - [...this.#running.values()].filter(task => task.name === name).length
  }

  /** Starts a task, unless it runs already, too many of its follower run, or the process stops. */
  start(found: Found): void {
    const key = `${found.name} ${found.organization_id} ${found.id}`
    if (this.#running.has(key) || this.#isStopping || this.countFree(this.#byName.get(found.name)!) <= 0) return
    const ending = new AbortController()
    const done = this.#run(found, ending).finally(() => this.#running.delete(key))
    this.#running.set(key, { name: found.name, done, stop: () => ending.abort() })
  }

  /** Waits for the tasks that run. */
  async idle(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  /** Asks the tasks that run to end soon. No other task starts. */
  stop(): void {
    this.#isStopping = true
    for (const task of this.#running.values()) task.stop()
  }

  #rowOf({ organization_id, name, id }: Found): unknown[] {
    return [organization_id, name, id, this.#owner]
  }

  async #run(found: Found, ending: AbortController): Promise<void> {
    const { organization_id, name, missing } = found
    const { report, nowMs, leaseMs } = this.#options
    const db = this.#db
    const row = this.#rowOf(found)
    const sentMs = performance.now()
    try {
      if (missing) await db.query(insertFollowerSql, [organization_id, name])
      const [claim] = await db.query<Claim>(claimFollowerSql, [...row, leaseMs, timeOf(nowMs())])
      if (!claim) return
      const lease = keepLease(db, row, leaseMs, sentMs, ending)
      try {
        const progress = await this.#byName.get(name)!.work(this.#taskOf(found, claim, lease, ending.signal))
        const times = [timeOf(progress.notBeforeMs), timeOf(progress.wakeAtMs)]
        await db.query(releaseFollowerSql, [...row, progress.sequence, ...times])
      } catch (error) {
        // Another process works on after the last stored position. So does the next start, if this process stops.
        if (this.#isStopping) await db.query(releaseFollowerSql, [...row, claim.sequence, null, timeOf(nowMs())])
        else if (!(error instanceof LeaseLost)) await this.#recordFailure(error, found, claim)
      } finally {
        lease.end()
      }
    } catch (error) {
      report(error)
    }
  }

  #taskOf(found: Found, claim: Claim, lease: Lease, signal: Signal): Task {
    const row = this.#rowOf(found)
    const throwIfLost = (rows: unknown[]) => {
      if (rows.length === 0) throw new LeaseLost(`another process follows the log as ${found.name}`)
    }
    return {
      db: this.#limited,
      organization_id: found.organization_id,
      id: found.id,
      after: claim.sequence,
      head: claim.head,
      signal,
      isHeld: lease.isHeld,
      hold: async tx => throwIfLost(await tx.query(holdLeaseSql, row)),
      advance: async (tx, sequence) => throwIfLost(await tx.query(advanceFollowerSql, [...row, sequence])),
    }
  }

  async #recordFailure(error: unknown, found: Found, { failures }: Claim): Promise<void> {
    const { report, nowMs } = this.#options
    const { organization_id, name, id } = found
    const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(failures, 20))
    const { fault, code, routine } = describeFault(error)
    const kind = [fault, code, routine].filter(Boolean).join(' ')
    this.#db.observer?.followerFailed(name)
    report(error, { follower: name, organization_id, id, failures: failures + 1 })
    await this.#db.query(recordFailureSql, [...this.#rowOf(found), timeOf(nowMs() + backoffMs), kind])
  }
}
