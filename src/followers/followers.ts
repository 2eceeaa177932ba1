import { setTimeout as pause } from 'node:timers/promises'
import { onCommit } from '../db/commit-events.ts'
import type { Database } from '../db/db.ts'
import type { FollowerLag } from '../process/observer.ts'
import type { Follower, News } from './follower.ts'
import { Looks } from './looks.ts'
import { PassedOver } from './pass-over.ts'
import { findNewsOfSql, findNewsSql, listFailingFollowersSql, readLagSql } from './sql.ts'
import { type Found, type TaskOptions, Tasks, timeOf } from './tasks.ts'

export type FollowerOptions = Pick<TaskOptions, 'report'> &
  Partial<Pick<TaskOptions, 'nowMs' | 'leaseMs'>> & { tickMs?: number }

export type Followers = {
  /** Searches once and starts the work that it finds. Returns the number of tasks found. */
  tick(): Promise<number>
  /** Waits until all tasks have ended. */
  idle(): Promise<void>
  /** Works until no follower has work now, or until it is stopped. */
  settle(): Promise<void>
  /** Searches at intervals, and after each commit of this process. */
  start(): void
  /** Stops the work. Other processes can take over at once. */
  stop(): Promise<void>
}

const defaultTickMs = 250
/** A slow search is repeated less often: it takes at most a hundredth of the time, unless it has left work behind. */
const pausePerSearchMs = 100
const maxPauseMs = 10_000
const defaultLeaseMs = 6_000
/** The maximum number of organizations that one search finds of a follower with `passOver`. */
const maxPassed = 1_000

/** Creates the runner of a process's followers. It does nothing before `start`, `tick` or `settle`. */
export function createFollowers(db: Database, followers: readonly Follower[], options: FollowerOptions): Followers {
  const { report, nowMs = Date.now, leaseMs = defaultLeaseMs, tickMs = defaultTickMs } = options
  let hurry = () => {}
  const onFewLeft = (name: string) => {
    if (search.hasLeft(name)) hurry()
  }
  const onEnd = (organizationId: number) => {
    if (ticking) looks.afterWork(organizationId)
  }
  const tasks = new Tasks(db, followers, { report, nowMs, leaseMs, onFewLeft, onEnd })
  const stopping = new AbortController()
  const passedOver = new PassedOver(db, { nowMs, report })
  const search = createSearch(db, followers, { tasks, passedOver, nowMs, onEnd })
  const looks = new Looks(search.findNewsOf, report)
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
        const tookMs = performance.now() - startedMs
        pauseMs = search.mayGoOn() ? 0 : Math.min(maxPauseMs, Math.max(tickMs, tookMs * pausePerSearchMs))
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
      unsubscribe = onCommit(db, organizationId => looks.afterCommit(organizationId))
      ticking = tickUntilStopped()
    },
    stop: async () => {
      unsubscribe()
      stopping.abort()
      tasks.stop()
      await looks.stop()
      await ticking
      await tasks.idle()
      await passedOver.storeAll()
    },
  }
}

type SearchOptions = Pick<TaskOptions, 'nowMs' | 'onEnd'> & { tasks: Tasks; passedOver: PassedOver }

/** Finds followers with work. Skips the organizations without work, and adds tasks for the others. */
function createSearch(db: Database, followers: readonly Follower[], options: SearchOptions) {
  const { tasks, passedOver, nowMs, onEnd } = options
  const lastOrganization = new Map<string, number>()
  /** The followers for which the last search has reached its limit, so that there may be more work. */
  const left = new Set<string>()
  const maxOf = (follower: Follower) => (follower.passOver ? maxPassed + passedOver.count : tasks.countFree(follower))
  const freeFollowers = (isForEveryOrganization: boolean) =>
    followers.filter(each => each.isForEveryOrganization === isForEveryOrganization && maxOf(each) > 0)

  /** Returns the organizations where the follower `name` has news, and the last organization that it has processed. */
  async function start(name: string, found: readonly Found[]): Promise<{ news: Found[]; last: number | undefined }> {
    const follower = followers.find(each => each.name === name)!
    const { passed, others } = await passedOver.passOver(follower, found)
    for (const { organization_id } of passed) onEnd(organization_id)
    const free = tasks.countFree(follower)
    for (const each of others.slice(0, free)) tasks.add(each)
    const news = [...passed, ...others]
    if (others.length <= free) return { news, last: found.at(-1)!.organization_id }
    left.add(name)
    return { news, last: others[free - 1]?.organization_id }
  }

  return {
    /**
     * Searches all organizations. A follower with work in many of them begins after the organization of the previous
     * search. Returns the number of findings.
     */
    findNews: async (): Promise<number> => {
      const groups = [freeFollowers(true), freeFollowers(false)].map(group =>
        group.map(follower => ({ name: follower.name, max: maxOf(follower) })),
      )
      const values = groups.flatMap(group => [
        group.map(({ name }) => name),
        group.map(({ name }) => lastOrganization.get(name) ?? 0),
        group.map(({ max }) => max),
      ])
      const found = await db.query<Found>(findNewsSql, [...values, timeOf(nowMs())])
      const byName = Map.groupBy(found, ({ name }) => name)
      for (const { name, max } of groups.flat())
        if ((byName.get(name)?.length ?? 0) < max) left.delete(name)
        else left.add(name)
      let count = 0
      for (const [name, ofFollower] of byName) {
        const { news, last } = await start(name, ofFollower)
        if (last !== undefined) lastOrganization.set(name, last)
        count += news.length
      }
      await passedOver.storeOld()
      return count
    },
    /** Whether the last search has left organizations of this follower behind. */
    hasLeft: (name: string) => left.has(name),
    /** Whether the last search has left organizations behind that a search may start now. */
    mayGoOn: () => followers.some(follower => left.has(follower.name) && tasks.hasFewLeft(follower)),
    /** Returns the organizations with findings. */
    findNewsOf: async (organizationIds: number[]): Promise<Set<number>> => {
      const names = [true, false].map(isForEvery => freeFollowers(isForEvery).map(({ name }) => name))
      const found = await db.query<Found>(findNewsOfSql, [organizationIds, ...names, timeOf(nowMs())])
      const started = new Set<number>()
      for (const [name, ofFollower] of Map.groupBy(found, each => each.name))
        for (const { organization_id } of (await start(name, ofFollower)).news) started.add(organization_id)
      return started
    },
  }
}

type Behind = News & { name: string; seconds: number }

/**
 * Reads the lag of each follower, except for those with a schedule. It ignores paused followers, and changes without
 * work for a follower, whose position may not be stored yet.
 */
export async function readFollowerLag(db: Database, all: readonly Follower[]): Promise<FollowerLag[]> {
  const followers = all.filter(({ isScheduled = false }) => !isScheduled)
  const names = (isForEveryOrganization: boolean) =>
    followers.filter(each => each.isForEveryOrganization === isForEveryOrganization).map(({ name }) => name)
  const behind = Map.groupBy(await db.query<Behind>(readLagSql, [names(true), names(false)]), ({ name }) => name)
  const lags: FollowerLag[] = []
  for (const { name, passOver } of followers) {
    const news = behind.get(name) ?? []
    const idle = news.length > 0 ? await passOver?.(db, news) : undefined
    const busy = news.filter(each => (idle?.get(each)?.sequence ?? 0) < each.head)
    lags.push({
      name,
      changes: busy.reduce((sum, { after, head }) => sum + head - after, 0),
      organizations: new Set(busy.map(({ organization_id }) => organization_id)).size,
      seconds: busy.reduce((max, { seconds }) => Math.max(max, seconds), 0),
    })
  }
  return lags
}

/**
 * A follower whose last work failed. `sequence` is the last change that it has processed, `failure` the kind of the
 * error.
 */
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
