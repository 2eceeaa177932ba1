import { randomUUID } from 'node:crypto'
import { contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { describeFault } from '../process/describe-fault.ts'
import { FairPool } from '../process/fair-pool.ts'
import type { Signal } from '../process/signal.ts'
import type { Follower, News, Task } from './follower.ts'
import {
  advanceFollowerSql,
  claimFollowerSql,
  holdLeaseSql,
  insertFollowerSql,
  recordFailureSql,
  releaseFollowerSql,
  renewLeaseSql,
} from './sql.ts'

/** A follower with work in an organization. If its row is missing, it has never worked there. */
export type Found = News & { name: string; missing: boolean }

export type TaskOptions = {
  /** Receives each failure of a follower with its name and organization, and each failed statement of a task. */
  report(error: unknown, failure?: { follower: string; organization_id: number; id: number; failures: number }): void
  nowMs: () => number
  leaseMs: number
  /** Called when few tasks of a follower are left to start. */
  onFewLeft(name: string): void
  /** Called when a follower has ended its work in an organization. */
  onEnd(organization_id: number): void
}

type Claim = { sequence: number; failures: number; head: number }

/** The followers of a process use at most this many connections, so that they delay no requests. */
const maxConnections = 2
const firstBackoffMs = 1_000
const maxBackoffMs = 300_000

/** The maximum number of tasks of a follower that wait for a running task to end. */
const maxQueued = 100
/** With this many waiting tasks or fewer, the next search may begin. */
const fewQueued = maxQueued / 2

/** The database with the connections that the followers of an organization may use. */
function limitConnections(db: Database, connections: FairPool, organization_id: number): Database {
  const run = <T>(work: () => Promise<T>, signal?: Signal) => connections.run(organization_id, signal, work)
  return {
    ...db,
    root: db.root ?? db,
    query: (statement, values, signal) => run(() => db.query(statement, values, signal), signal) as never,
    transaction: (work, options) => run(() => db.transaction(work, options), options?.signal),
  }
}

/** A time in the form of a statement's value. */
export const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

/** Identifies a follower of an organization. */
export const keyOf = ({ name, organization_id, id }: Pick<Found, 'name' | 'organization_id' | 'id'>) =>
  `${name} ${organization_id} ${id}`

/** The running tasks of this process, each under a lease, and the tasks that wait for one of them to end. */
export class Tasks {
  readonly #db: Database
  readonly #connections = new FairPool({ max: maxConnections })
  readonly #byName: Map<string, Follower>
  readonly #options: TaskOptions
  readonly #owner = randomUUID()
  readonly #running: Map<string, FairPool>
  /** The running and waiting tasks, by key. */
  readonly #tasks = new Map<string, { done: Promise<void>; ending: AbortController }>()
  #isStopping = false

  constructor(db: Database, followers: readonly Follower[], options: TaskOptions) {
    this.#db = db
    this.#byName = new Map(followers.map(follower => [follower.name, follower]))
    this.#options = options
    this.#running = new Map(followers.map(({ name, maxConcurrent: max }) => [name, new FairPool({ max })]))
  }

  get count(): number {
    return this.#tasks.size
  }

  /** The number of tasks of this follower that can still be added. */
  countFree({ name, maxConcurrent }: Follower): number {
    const { held, waiting } = this.#running.get(name)!
    return maxConcurrent - held + maxQueued - waiting
  }

  /** Whether few tasks of this follower are waiting. */
  hasFewLeft({ name }: Pick<Follower, 'name'>): boolean {
    return this.#running.get(name)!.waiting <= fewQueued
  }

  /**
   * Starts a task, or queues it until another task of its follower ends. Does nothing if the task exists already or the
   * process stops.
   */
  add(found: Found): void {
    const { organization_id, name } = found
    const key = keyOf(found)
    if (this.#isStopping || this.#tasks.has(key)) return
    const running = this.#running.get(name)!
    const ending = new AbortController()
    const done = running
      .run(organization_id, ending.signal, () => this.#run(found, ending))
      // The task was stopped while it waited.
      .catch(() => {})
      .finally(() => {
        this.#tasks.delete(key)
        if (this.hasFewLeft({ name })) this.#options.onFewLeft(name)
      })
    this.#tasks.set(key, { done, ending })
  }

  /** Waits until no task is running or waiting. */
  async idle(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all([...this.#tasks.values()].map(({ done }) => done))
  }

  /** Requests that the running tasks end soon. No other task starts. */
  stop(): void {
    this.#isStopping = true
    for (const { ending } of this.#tasks.values()) ending.abort()
  }

  #rowOf({ organization_id, name, id }: Found): LeaseRow {
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
        if (!this.#isStopping) this.#options.onEnd(organization_id)
      } catch (error) {
        // Another process, or the next start, continues after the last stored position.
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
      ...contextOf(limitConnections(this.#db, this.#connections, found.organization_id), found.organization_id),
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

/** Another process has taken over the follower, because this one did not renew its lease in time. */
export class LeaseLost extends Error {}

/** The key of a follower's row, and the owner of its lease. */
type LeaseRow = [organization_id: number, name: string, id: number, owner: string]

type Lease = { isHeld(): boolean; end(): void }

/** Renews a lease until its end. If that fails, aborts the work before another process can take over. */
function keepLease(db: Database, row: LeaseRow, lengthMs: number, sentMs: number, ending: AbortController): Lease {
  let validUntilMs = sentMs + lengthMs
  let isOver = false
  const lose = () => {
    isOver = true
    ending.abort(new LeaseLost('the lease was not renewed in time'))
  }
  const isHeld = () => !isOver && performance.now() < validUntilMs
  const renew = async () => {
    const renewedMs = performance.now()
    const rows = await db.query(renewLeaseSql, [...row, lengthMs]).catch(() => undefined)
    if (rows?.length === 0) lose()
    else if (rows) validUntilMs = renewedMs + lengthMs
  }
  const timer = setInterval(() => {
    if (!isHeld()) lose()
    else void renew()
  }, lengthMs / 3)
  timer.unref()
  return {
    isHeld,
    end: () => {
      isOver = true
      clearInterval(timer)
    },
  }
}
