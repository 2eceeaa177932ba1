import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { onCommit } from '../changes/commit-events.ts'
import type { Database, Transaction } from '../db/db.ts'
import { KeyedSemaphore } from '../db/keyed-semaphore.ts'
import { describeFault } from '../describe-fault.ts'
import type { Signal } from '../signal.ts'
import {
  advanceFollowerSql,
  claimFollowerSql,
  findNewsOfSql,
  findNewsSql,
  holdLeaseSql,
  insertFollowerSql,
  listFailingFollowersSql,
  readLagSql,
  recordFailureSql,
  releaseFollowerSql,
  renewLeaseSql,
} from './sql.ts'

/**
 * A reader of the change log that works behind the writes. In each organization it has a position, and one process at a time works
 * for it. Either the work commits together with the position ({@link Task.advance}), or doing it twice changes nothing.
 */
export type Follower = {
  name: string
  /** Whether every organization has this follower. Otherwise its module inserts and deletes the rows of `followers`. */
  isForEveryOrganization: boolean
  /** How many organizations, or rows, one process works for at a time. */
  maxConcurrent: number
  /** Works through the changes after `task.after` up to `task.head`. When the signal aborts, it ends soon and returns how far it is. */
  work(task: Task): Promise<Progress>
}

/** The work of one follower in one organization, under a lease. */
export type Task = {
  db: Database
  organization_id: number
  id: number
  after: number
  head: number
  /** Aborts when the process stops, or another one may have taken over. */
  signal: Signal
  /** Whether no other process can have taken over. */
  isHeld(): boolean
  /** Keeps other processes from taking over until the transaction ends. Throws {@link LeaseLost}. */
  hold(tx: Transaction): Promise<void>
  /** Stores the position in the transaction of the work. Throws {@link LeaseLost}. */
  advance(tx: Transaction, sequence: number): Promise<void>
}

/** The position that the work has reached. Times are milliseconds of Unix time. */
export type Progress = {
  sequence: number
  /** The next work begins no earlier. */
  notBeforeMs?: number | undefined
  /** The next work begins then, even without news. */
  wakeAtMs?: number | undefined
}

/** Another process works for the follower, because this one did not renew its lease in time. */
export class LeaseLost extends Error {}

export type FollowerOptions = {
  /** Receives a failed search, and each failure of a follower with its name and organization. */
  report(error: unknown, failure?: { follower: string; organization_id: number; id: number; failures: number }): void
  nowMs?: () => number
  tickMs?: number
  leaseMs?: number
}

export type Followers = {
  /** Searches once and starts the work that it finds. Returns how many tasks it has started. */
  tick(): Promise<number>
  /** Waits for the tasks that run. */
  idle(): Promise<void>
  /** Works until no follower has anything to do now, or it is stopped. */
  settle(): Promise<void>
  /** Searches in intervals, and after each commit of this process. */
  start(): void
  /** Stops the work. Other processes can take over at once. */
  stop(): Promise<void>
}

const tickMs = 250
/** A search that takes long is repeated less often: it takes at most a twentieth of the time. */
const pausePerSearchMs = 20
const maxPauseMs = 10_000
const leaseMs = 6_000
/** Followers use at most two connections of a process, so that they delay no requests. */
const maxConnections = 2
/** Commits of an organization within this time cause one search. */
const debounceMs = 25
/** After a search that found nothing, the commits of an organization cause no other for this time. The next tick finds their news. */
const quietMs = 1_000
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

type Found = { organization_id: number; name: string; id: number; missing: boolean }
type Claim = { sequence: number; failures: number; head: number }

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

/** Creates what runs the followers of a process. It does nothing before `start`, `tick` or `settle`. */
export function createFollowers(db: Database, followers: readonly Follower[], options: FollowerOptions): Followers {
  const { report, nowMs = Date.now } = options
  const lengthMs = options.leaseMs ?? leaseMs
  const owner = randomUUID()
  const limited = limitConnections(db)
  const byName = new Map(followers.map(follower => [follower.name, follower]))
  const running = new Map<string, { name: string; done: Promise<void>; stop(): void }>()
  const lastOrganization = new Map<string, number>()
  const stopping = new AbortController()
  const keyOf = ({ name, organization_id, id }: Found) => `${name} ${organization_id} ${id}`
  const freeOf = ({ name, maxConcurrent }: Follower) =>
    maxConcurrent - [...running.values()].filter(task => task.name === name).length
  const grouped = (isForEveryOrganization: boolean) =>
    followers.filter(follower => follower.isForEveryOrganization === isForEveryOrganization && freeOf(follower) > 0)

  function start(found: Found): void {
    const key = keyOf(found)
    if (running.has(key) || stopping.signal.aborted || freeOf(byName.get(found.name)!) <= 0) return
    const ending = new AbortController()
    const done = runTask(found, ending).finally(() => running.delete(key))
    running.set(key, { name: found.name, done, stop: () => ending.abort() })
  }

  async function tick(): Promise<number> {
    const groups = [grouped(true), grouped(false)]
    const values = groups.flatMap(group => [
      group.map(({ name }) => name),
      group.map(({ name }) => lastOrganization.get(name) ?? 0),
      group.map(freeOf),
    ])
    const rows = await db.query<Found>(findNewsSql, [...values, timeOf(nowMs())])
    for (const row of rows) {
      lastOrganization.set(row.name, row.organization_id)
      start(row)
    }
    return rows.length
  }

  async function findNewsOf(organizationId: number): Promise<number> {
    const [all, own] = [grouped(true), grouped(false)].map(group => group.map(({ name }) => name))
    const rows = await db.query<Found>(findNewsOfSql, [organizationId, all, own, timeOf(nowMs())])
    rows.forEach(start)
    return rows.length
  }

  async function runTask(found: Found, ending: AbortController): Promise<void> {
    const { organization_id, name, id, missing } = found
    const row = [organization_id, name, id, owner]
    const sentMs = performance.now()
    try {
      if (missing) await db.query(insertFollowerSql, [organization_id, name])
      const [claim] = await db.query<Claim>(claimFollowerSql, [...row, lengthMs, timeOf(nowMs())])
      if (!claim) return
      const lease = keepLease(db, row, lengthMs, sentMs, ending)
      try {
        const task = taskOf(found, claim, lease, ending.signal)
        const progress = await byName.get(name)!.work(task)
        const times = [timeOf(progress.notBeforeMs), timeOf(progress.wakeAtMs)]
        await db.query(releaseFollowerSql, [...row, progress.sequence, ...times])
      } catch (error) {
        // Another process works on after the last stored position. So does the next start, if this process stops.
        if (stopping.signal.aborted) await db.query(releaseFollowerSql, [...row, claim.sequence, null, timeOf(nowMs())])
        else if (!(error instanceof LeaseLost)) await recordFailure(error, found, claim)
      } finally {
        lease.end()
      }
    } catch (error) {
      report(error)
    }
  }

  function taskOf({ organization_id, name, id }: Found, claim: Claim, lease: Lease, signal: Signal): Task {
    const row = [organization_id, name, id, owner]
    const orLost = (rows: unknown[]) => {
      if (rows.length === 0) throw new LeaseLost(`another process follows the log as ${name}`)
    }
    return {
      db: limited,
      organization_id,
      id,
      after: claim.sequence,
      head: claim.head,
      signal,
      isHeld: lease.isHeld,
      hold: async tx => orLost(await tx.query(holdLeaseSql, row)),
      advance: async (tx, sequence) => orLost(await tx.query(advanceFollowerSql, [...row, sequence])),
    }
  }

  async function recordFailure(error: unknown, { organization_id, name, id }: Found, { failures }: Claim) {
    const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(failures, 20))
    const { fault, code, routine } = describeFault(error)
    const kind = [fault, code, routine].filter(Boolean).join(' ')
    const row = [organization_id, name, id, owner]
    db.observer?.followerFailed(name)
    report(error, { follower: name, organization_id, id, failures: failures + 1 })
    await db.query(recordFailureSql, [...row, timeOf(nowMs() + backoffMs), kind])
  }

  const idle = async () => {
    await Promise.all([...running.values()].map(({ done }) => done))
  }
  const wake = debouncePerKey(findNewsOf, report)
  let unsubscribe = () => {}
  let ticking: Promise<void> | undefined

  async function tickUntilStopped() {
    let pauseMs = options.tickMs ?? tickMs
    while (!stopping.signal.aborted) {
      await pause(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
      if (stopping.signal.aborted) break
      const startedMs = performance.now()
      try {
        await tick()
        pauseMs = Math.max(options.tickMs ?? tickMs, (performance.now() - startedMs) * pausePerSearchMs)
      } catch (error) {
        report(error)
        pauseMs = Math.min(maxPauseMs, pauseMs * 2)
      }
    }
  }

  return {
    tick,
    idle,
    settle: async () => {
      while (!stopping.signal.aborted && ((await tick()) > 0 || running.size > 0)) await idle()
    },
    start: () => {
      unsubscribe = onCommit(db, wake.call)
      ticking = tickUntilStopped()
    },
    stop: async () => {
      unsubscribe()
      stopping.abort()
      wake.stop()
      for (const task of running.values()) task.stop()
      await ticking
      await idle()
    },
  }
}

type Lease = { isHeld(): boolean; end(): void }

/** Renews a lease until its end. Aborts the work if that fails, before another process can take over. */
function keepLease(db: Database, row: unknown[], lengthMs: number, sentMs: number, ending: AbortController): Lease {
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

/** Calls `work` soon after the first of several calls with one key, and seldom while it finds nothing. */
function debouncePerKey(work: (key: number) => Promise<number>, report: (error: unknown) => void) {
  const timers = new Map<number, NodeJS.Timeout>()
  const quietUntilMs = new Map<number, number>()
  const run = async (key: number) => {
    const found = await work(key).catch(error => {
      report(error)
      return 0
    })
    if (found === 0) quietUntilMs.set(key, performance.now() + quietMs)
    else quietUntilMs.delete(key)
  }
  return {
    call: (key: number) => {
      if (timers.has(key) || performance.now() < (quietUntilMs.get(key) ?? 0)) return
      const timer = setTimeout(() => {
        timers.delete(key)
        void run(key)
      }, debounceMs)
      timer.unref()
      timers.set(key, timer)
    },
    stop: () => {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}

/** How far the followers of a name are behind: changes of all organizations, and the age of the oldest one. */
export type FollowerLag = { name: string; changes: number; seconds: number }

/** Reads how far each follower is behind. A paused one does not count. */
export async function readFollowerLag(db: Database, followers: readonly Follower[]): Promise<FollowerLag[]> {
  const names = (isForEveryOrganization: boolean) =>
    followers.filter(each => each.isForEveryOrganization === isForEveryOrganization).map(({ name }) => name)
  const lags = await db.query<FollowerLag>(readLagSql, [names(true), names(false)])
  // A follower without a row is behind by nothing.
  return followers.map(({ name }) => lags.find(lag => lag.name === name) ?? { name, changes: 0, seconds: 0 })
}

/** A follower whose last work failed. `sequence` is the last change that it has worked on, `failure` the kind of the error. */
export type FailingFollower = {
  organization: string
  name: string
  id: number
  sequence: number
  failures: number
  failure: string
  not_before: string
}

/** The first 100 followers, of all organizations, whose last work failed. */
export const listFailingFollowers = (db: Database): Promise<FailingFollower[]> =>
  db.query<FailingFollower>(listFailingFollowersSql, [])
