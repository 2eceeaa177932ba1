import { setTimeout as pause } from 'node:timers/promises'
import { onCommit } from '../changes/commit-events.ts'
import type { Database } from '../db/db.ts'
import type { Follower } from './follower.ts'
import { findNewsOfSql, findNewsSql, listFailingFollowersSql, readLagSql } from './sql.ts'
import { type Found, type TaskOptions, Tasks, timeOf } from './tasks.ts'

export type FollowerOptions = Pick<TaskOptions, 'report'> &
  Partial<Pick<TaskOptions, 'nowMs' | 'leaseMs'>> & { tickMs?: number }

export type Followers = {
  /** Searches once and starts the work that it finds. Returns how many tasks it has found. */
  tick(): Promise<number>
  /** Waits until no task runs. */
  idle(): Promise<void>
  /** Works until no follower has anything to do now, or it is stopped. */
  settle(): Promise<void>
  /** Searches in intervals, and after each commit of this process. */
  start(): void
  /** Stops the work. Other processes can take over at once. */
  stop(): Promise<void>
}

const defaultTickMs = 250
/** A search that takes long is repeated less often: it takes at most a twentieth of the time, unless it has left work behind. */
const pausePerSearchMs = 20
const maxPauseMs = 10_000
const defaultLeaseMs = 6_000
/** Commits of an organization within this time cause one search. */
const debounceMs = 25
/** After a search that found nothing, the next one of the organization begins no earlier. */
const quietMs = 1_000

/** Creates what runs the followers of a process. It does nothing before `start`, `tick` or `settle`. */
export function createFollowers(db: Database, followers: readonly Follower[], options: FollowerOptions): Followers {
  const { report, nowMs = Date.now, leaseMs = defaultLeaseMs, tickMs = defaultTickMs } = options
  let hurry = () => {}
  const onFewLeft = (name: string) => {
    if (search.hasLeft(name)) hurry()
  }
  const tasks = new Tasks(db, followers, { report, nowMs, leaseMs, onFewLeft, onEnd })
  const stopping = new AbortController()
  const search = createSearch(db, followers, tasks, nowMs)
  const wake = debouncePerKey(search.findNewsOf, report)
  // A search after a commit does not find a follower that works or pauses. One more search finds its news, if no tick does before.
  function onEnd(organizationId: number) {
    const searchAgain = () => {
      if (!stopping.signal.aborted) wake.call(organizationId)
    }
    if (ticking) setTimeout(searchAgain, quietMs).unref()
  }
  let unsubscribe = () => {}
  let ticking: Promise<void> | undefined

  async function tickUntilStopped() {
    let pauseMs = tickMs
    while (!stopping.signal.aborted) {
      const waking = new AbortController()
      hurry = () => waking.abort()
      const signal = AbortSignal.any([stopping.signal, waking.signal])
      await pause(pauseMs, undefined, { signal, ref: false }).catch(() => {})
      if (stopping.signal.aborted) break
      const startedMs = performance.now()
      try {
        await search.findNews()
        pauseMs = Math.min(maxPauseMs, Math.max(tickMs, (performance.now() - startedMs) * pausePerSearchMs))
      } catch (error) {
        report(error)
        pauseMs = Math.min(maxPauseMs, pauseMs * 2)
      }
    }
  }

  return {
    tick: search.findNews,
    idle: () => tasks.idle(),
    settle: async () => {
      while (!stopping.signal.aborted && ((await search.findNews()) > 0 || tasks.count > 0)) await tasks.idle()
    },
    start: () => {
      unsubscribe = onCommit(db, wake.call)
      ticking = tickUntilStopped()
    },
    stop: async () => {
      unsubscribe()
      stopping.abort()
      wake.stop()
      tasks.stop()
      await ticking
      await tasks.idle()
    },
  }
}

/** Finds followers that have something to do, and adds their tasks. Both searches return how many they have found. */
function createSearch(db: Database, followers: readonly Follower[], tasks: Tasks, nowMs: () => number) {
  const lastOrganization = new Map<string, number>()
  /** The followers of which the last search has found as many as may be added, so that there may be more. */
  const left = new Set<string>()
  const freeFollowers = (isForEveryOrganization: boolean) =>
    followers.filter(each => each.isForEveryOrganization === isForEveryOrganization && tasks.countFree(each) > 0)

  return {
    /** Searches all organizations. A follower with many of them begins after the one that it was started for last. */
    findNews: async (): Promise<number> => {
      const groups = [freeFollowers(true), freeFollowers(false)].map(group =>
        group.map(follower => ({ name: follower.name, max: tasks.countFree(follower) })),
      )
      const values = groups.flatMap(group => [
        group.map(({ name }) => name),
        group.map(({ name }) => lastOrganization.get(name) ?? 0),
        group.map(({ max }) => max),
      ])
      const found = await db.query<Found>(findNewsSql, [...values, timeOf(nowMs())])
      for (const { name, max } of groups.flat())
        if (found.filter(each => each.name === name).length < max) left.delete(name)
        else left.add(name)
      for (const each of found) {
        lastOrganization.set(each.name, each.organization_id)
        tasks.add(each)
      }
      return found.length
    },
    /** Whether the last search has left tasks of this follower behind. */
    hasLeft: (name: string) => left.has(name),
    findNewsOf: async (organizationId: number): Promise<number> => {
      const names = [true, false].map(isForEvery => freeFollowers(isForEvery).map(({ name }) => name))
      const found = await db.query<Found>(findNewsOfSql, [organizationId, ...names, timeOf(nowMs())])
      for (const each of found) tasks.add(each)
      return found.length
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
      if (timers.has(key)) return
      const quietLeftMs = (quietUntilMs.get(key) ?? 0) - performance.now()
      const timer = setTimeout(
        () => {
          timers.delete(key)
          void run(key)
        },
        Math.max(debounceMs, quietLeftMs),
      )
      timer.unref()
      timers.set(key, timer)
    },
    stop: () => {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}

/** How far the followers of a name are behind: changes of all organizations, in how many, and the age of the oldest one. */
export type FollowerLag = { name: string; changes: number; organizations: number; seconds: number }

/** Reads how far each follower is behind, without those that work by the clock. A paused one does not count. */
export async function readFollowerLag(db: Database, all: readonly Follower[]): Promise<FollowerLag[]> {
  const followers = all.filter(({ isScheduled = false }) => !isScheduled)
  const names = (isForEveryOrganization: boolean) =>
    followers.filter(each => each.isForEveryOrganization === isForEveryOrganization).map(({ name }) => name)
  const lags = await db.query<FollowerLag>(readLagSql, [names(true), names(false)])
  // A follower without a row is behind by nothing.
  return followers.map(
    ({ name }) => lags.find(lag => lag.name === name) ?? { name, changes: 0, organizations: 0, seconds: 0 },
  )
}

/** A follower whose last work failed. `sequence` is the last change that it has worked on, `failure` the kind of the error. */
export type FailingFollower = {
  organization: string
  name: string
  id: number
  sequence: number
  failures: number
  failure: string
  /** The time of the next attempt. Null if it is due at once. */
  not_before: string | null
}

/** The first 100 followers, of all organizations, whose last work failed. */
export const listFailingFollowers = (db: Database): Promise<FailingFollower[]> =>
  db.query<FailingFollower>(listFailingFollowersSql, [])
