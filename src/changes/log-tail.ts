import { onCommit } from '../db/commit-events.ts'
import { type Context, contextOf } from '../db/context.ts'
import { type Database, dataKeyOf } from '../db/db.ts'
import { perDatabase } from '../db/per-database.ts'
import { FairPool } from '../process/fair-pool.ts'
import type { FollowingCall } from '../route/call.ts'
import { Fault } from '../values/errors.ts'
import { KeptChanges, type Part } from './kept-changes.ts'
import { type Head, readRange } from './read-changes.ts'
import { logKeyOf, maySee, type Selection, widestOf } from './selection.ts'
import { readHeadsSql } from './sql.ts'

/** The interval at which one statement asks for the heads, because another process may have written. */
const pollMs = 200
/** The interval at which the token of a request is verified again. */
const verifyMs = 1_000
/** A request that is over and whose client reads nothing for this long is disconnected. */
const disconnectMs = 1_000
/** An error of the database is logged at most once in this time. */
const errorIntervalMs = 10_000

/**
 * The minimum interval between two reads of an organization's log, and the time that each waiting request adds to it.
 * Sending to 1,000 clients takes about 10 ms.
 */
const minReadIntervalMs = 10
const readIntervalPerSubscriberMs = 0.1
const readSize = { limit: 1_000, maxBytes: 512 * 1024 }

/** The limit of changes in memory for requests that are slightly behind. All organizations share the second limit. */
const maxKeptBytes = 256 * 1024
const maxKeptBytesOfAll = 16 * 1024 * 1024
const reads = perDatabase(() => new FairPool({ max: 2 }))

/** The response to a request for changes: some changes, or the reason why there are none. */
export type Next =
  | { part: Part }
  /** The changes after the position are no longer in memory: read them from the database. */
  | 'behind'
  /** The maximum waiting time is over. */
  | 'due'
  /** The service is shutting down, the log has another numbering, or the token is no longer valid. */
  | 'over'

type TailCall = Pick<FollowingCall, 'draining' | 'explain' | 'following' | 'signal'>

/**
 * The newest changes of the organizations with requests that wait for them. One object per process and database. It
 * notices the commits of this process at once. One statement for all organizations finds erasures and the commits of
 * other processes every 200 ms. Each change is read and printed once, whatever the number of requests.
 */
class LogTail {
  readonly #db: Database
  /** By organization and {@link logKeyOf}. */
  readonly #logs = new Map<string, FollowedLog>()
  #stop: (() => void) | undefined
  #isPolling = false

  constructor(db: Database) {
    this.#db = db
  }

  follow(organization_id: number, head: Head, call: TailCall, selection: Selection): Subscriber {
    const key = `${organization_id} ${logKeyOf(selection)}`
    let log = this.#logs.get(key)
    if (log && (log.isOver || log.log_id !== head.log_id)) {
      log.finish()
      log = undefined
    }
    const widest = widestOf(selection)
    log ??= new FollowedLog(this.#db, organization_id, head, widest, () => maxKeptBytesOfAll / this.#logs.size)
    this.#logs.set(key, log)
    this.#start()
    return new Subscriber(log, call, selection, () => {
      if (log.subscribers.size === 0 && this.#logs.get(key) === log) this.#logs.delete(key)
      if (this.#logs.size === 0) this.#stop?.()
    })
  }

  countSubscribers(organization_id: number): number {
    const logs = [...this.#logs.values()].filter(log => log.organization_id === organization_id)
    return logs.reduce((count, { subscribers }) => count + subscribers.size, 0)
  }

  #start() {
    if (this.#stop) return
    const timer = setInterval(() => this.#tick(), pollMs).unref()
    const forget = onCommit(this.#db, organization_id => {
      for (const links of [undefined, 'id'] as const)
        this.#logs.get(`${organization_id} ${logKeyOf({ segments: null, links })}`)?.read()
    })
    this.#stop = () => {
      clearInterval(timer)
      forget()
      this.#stop = undefined
    }
  }

  #tick() {
    const nowMs = performance.now()
    const dataKey = dataKeyOf(this.#db)
    for (const log of this.#logs.values()) {
      // Otherwise changes that only a former primary had would stay in memory. The clients begin again at their
      // positions.
      if (log.dataKey !== dataKey) log.finish()
      log.forget()
      for (const subscriber of log.subscribers) subscriber.tick(nowMs)
    }
    void this.#poll()
  }

  async #poll() {
    const logs = [...this.#logs.values()]
    if (this.#isPolling || logs.length === 0) return
    this.#isPolling = true
    try {
      // A read may end while the statement runs, and its result is then newer than that of the statement.
      const asked = logs.map(log => ({ log, end: log.end }))
      type Row = {
        organization_id: number
        sequence: number
        log_id: string
        erasure: number | null
        segments: number | null
      }
      const organizations = [...new Set(logs.map(({ organization_id }) => organization_id))]
      const heads = await this.#db.query<Row>(readHeadsSql, [organizations])
      const headOf = new Map(heads.map(head => [head.organization_id, head]))
      for (const { log, end } of asked) {
        const head = headOf.get(log.organization_id)
        if (!head) continue
        log.see({ head: log.isOfSegments ? (head.segments ?? 0) : head.sequence, log_id: head.log_id }, end)
        log.seeErasure(head.erasure)
      }
    } catch (error) {
      for (const log of logs) log.report(error)
    } finally {
      this.#isPolling = false
    }
  }
}

/** The end of one organization's log, in memory for as long as requests follow it. */
class FollowedLog {
  readonly organization_id: number
  readonly log_id: string
  readonly dataKey: object
  readonly subscribers = new Set<Subscriber>()
  isOver = false
  /** The selection with which the log is read: that of all requests if they have the same one, or the widest. */
  #selection: Selection
  readonly #widest: Selection
  readonly #db: Database
  readonly #maxBytes: () => number
  #erasure: number | null = null
  readonly #kept: KeptChanges
  #waiting = 0
  #isReading = false
  #mayHaveMore = true
  #nextReadMs = 0
  #timer: NodeJS.Timeout | undefined
  #nextReportMs = 0

  constructor(
    db: Database,
    organization_id: number,
    { head, log_id }: Head,
    widest: Selection,
    maxBytes: () => number,
  ) {
    this.#db = db
    this.dataKey = dataKeyOf(db)
    this.#selection = widest
    this.#widest = widest
    this.organization_id = organization_id
    this.log_id = log_id
    this.#kept = new KeptChanges(head)
    this.#maxBytes = maxBytes
  }

  /** Whether the log covers segments. Its head is the position of their follower, and a request may be ahead of it. */
  get isOfSegments(): boolean {
    return this.#widest.segments !== null
  }

  get isAwaited(): boolean {
    return this.#waiting > 0
  }

  add(subscriber: Subscriber): void {
    const { selection: own } = subscriber
    const isOnly = this.subscribers.values().every(({ selection }) => selection.key === own.key)
    this.subscribers.add(subscriber)
    const selection = isOnly ? own : this.#widest
    if (selection.key === this.#selection.key) return
    this.#selection = selection
    // The changes that were read may lack some that the new selection includes.
    this.#kept.restartAt(this.#kept.end)
  }

  /** Counts a request that begins or stops to wait for the next change. */
  countWaiting(by: 1 | -1): void {
    this.#waiting += by
    if (this.#waiting === 1 && by === 1 && this.#mayHaveMore) this.read()
  }

  /** The changes after a position. Undefined if the request has to wait for them. */
  after(position: number): Next | undefined {
    const kept = this.#kept
    if (position > kept.end && !this.isAwaited) kept.restartAt(position)
    if (position < kept.start) return 'behind'
    return position < kept.end ? { part: kept.partAfter(position) } : undefined
  }

  /** Reads the changes since the last read, as soon as the interval allows and a request waits. */
  read(): void {
    this.#mayHaveMore = true
    if (this.isAwaited && !this.#isReading && !this.#timer) {
      const pauseMs = this.#nextReadMs - performance.now()
      if (pauseMs <= 0) void this.#readNow()
      else this.#timer = setTimeout(() => this.#readNow(), pauseMs).unref()
    }
  }

  /** The number of the newest change that was read. */
  get end(): number {
    return this.#kept.end
  }

  /** Records a head that was read when the newest known change was `end`. */
  see({ head, log_id }: Head, end: number): void {
    if (this.#isRenumbered({ head, log_id }, end)) this.finish()
    else if (head > this.#kept.end) this.read()
  }

  #isRenumbered({ head, log_id }: Head, end: number): boolean {
    return log_id !== this.log_id || (head < end && !this.isOfSegments)
  }

  /** Records the newest erasure. Changes that were read before it may have erased values. */
  seeErasure(erasure: number | null): void {
    if (erasure === this.#erasure) return
    this.#erasure = erasure
    this.#kept.restartAt(this.#kept.end)
  }

  /** Ends all requests, because their positions mean nothing in a log with another numbering. */
  finish(): void {
    this.isOver = true
    for (const subscriber of [...this.subscribers]) subscriber.end()
  }

  /** Logs an error of the database. The requests go on, because most errors are temporary. */
  report(error: unknown): void {
    const [subscriber] = this.subscribers
    if (!subscriber || performance.now() < this.#nextReportMs) return
    this.#nextReportMs = performance.now() + errorIntervalMs
    subscriber.call.explain(error)
  }

  /** Discards changes beyond the limits. Requests that have not received them read them from the database. */
  forget(): void {
    this.#kept.shrink(this.#limitBytes())
  }

  async #readNow() {
    this.#timer = undefined
    if (!this.isAwaited) return
    this.#isReading = true
    this.#mayHaveMore = false
    const after = this.#kept.end
    const selection = this.#selection
    try {
      const request = { after, selection, ...readSize }
      const { head, log_id, last, changes } = await reads(this.#db).run(this.organization_id, undefined, () =>
        readRange(contextOf(this.#db, this.organization_id), request),
      )
      if (this.#isRenumbered({ head, log_id }, after)) this.finish()
      // A request may have begun in the meantime. It moves the end to a later position, or has another selection.
      else if (this.#kept.end === after && this.#selection === selection) {
        if (changes.some(({ operation }) => operation === 'erase')) this.#kept.restartAt(after)
        this.#kept.add(changes, last, this.#limitBytes())
        for (const subscriber of this.subscribers) subscriber.wake()
      }
      if (last < head || this.#selection !== selection) this.#mayHaveMore = true
    } catch (error) {
      // The segments have changed members, so the requests begin again.
      if (error instanceof Fault) this.finish()
      else this.report(error)
    } finally {
      this.#isReading = false
      this.#nextReadMs = performance.now() + minReadIntervalMs + this.subscribers.size * readIntervalPerSubscriberMs
      if (this.#mayHaveMore) this.read()
    }
  }

  #limitBytes = () => Math.min(maxKeptBytes, this.#maxBytes())
}

/** A request that follows a log. It must be closed. */
class Subscriber {
  isWaiting = false
  /** The reason why the token is no longer valid. Undefined as long as it is valid. */
  refusal: Error | undefined
  /**
   * The position up to which the request has read. While it waits, the position moves past changes that are not
   * selected.
   */
  position = 0
  readonly selection: Selection
  readonly call: TailCall
  readonly #log: FollowedLog
  readonly #onClose: () => void
  #isOver = false
  #isVerifying = false
  #dueMs = 0
  #resolve: ((next: Next) => void) | undefined
  #verifiedMs = performance.now()
  /** The time at which the request last asked for changes or received some. */
  #activeMs = performance.now()

  constructor(log: FollowedLog, call: TailCall, selection: Selection, onClose: () => void) {
    this.#log = log
    this.call = call
    this.selection = selection
    this.#onClose = onClose
    log.add(this)
    call.signal.addEventListener('abort', this.end)
    if (call.signal.aborted) this.end()
  }

  /** The changes after a position. Settles at `dueMs` of `performance.now()` at the latest. */
  next(position: number, dueMs: number): Promise<Next> | Next {
    this.#activeMs = performance.now()
    const next = this.#isOver ? 'over' : this.#log.after(position)
    if (next !== undefined) return next
    this.position = position
    this.#dueMs = dueMs
    return new Promise(resolve => {
      this.#resolve = resolve
      this.isWaiting = true
      this.#log.countWaiting(1)
    })
  }

  /**
   * Passes on the changes that were read, if they are selected. Without this check, waking the other requests took a
   * quarter of the time of the process, with 1,000 of them beside 3,500 writes per second.
   */
  wake(): void {
    if (!this.isWaiting) return
    let next = this.#log.after(this.position)
    while (typeof next === 'object' && !next.part.eventsOf(this.selection)) {
      this.position = next.part.last
      next = this.#log.after(this.position)
    }
    if (next !== undefined) this.#settle(next)
  }

  tick(nowMs: number): void {
    if (this.call.draining()) this.end()
    if (nowMs - this.#verifiedMs >= verifyMs) this.#verify(nowMs)
    if (this.isWaiting && nowMs >= this.#dueMs) this.#settle('due')
    if (this.#isOver && nowMs - this.#activeMs >= disconnectMs) this.call.following.disconnect()
  }

  end = (): void => {
    this.#isOver = true
    if (this.isWaiting) this.#settle('over')
  }

  close(): void {
    if (!this.#log.subscribers.delete(this)) return
    this.end()
    this.call.signal.removeEventListener('abort', this.end)
    this.#onClose()
  }

  #settle(next: Next) {
    this.isWaiting = false
    this.#activeMs = performance.now()
    this.#log.countWaiting(-1)
    this.#resolve!(next)
  }

  #verify(nowMs: number) {
    if (this.#isVerifying) return
    this.#verifiedMs = nowMs
    const accept = (caller: FollowingCall['caller']) => {
      this.#isVerifying = false
      if (!maySee(caller, this.selection)) this.end()
    }
    // An error of the database says nothing about the token.
    const refuse = (error: Error) => {
      this.#isVerifying = false
      // 403: the role of the caller was archived.
      if (!(error instanceof Fault) || ![401, 403].includes(error.refusal.status)) return
      this.refusal = error
      this.end()
    }
    try {
      const caller = this.call.following.authenticate()
      if (!(caller instanceof Promise)) return accept(caller)
      this.#isVerifying = true
      caller.then(accept, refuse)
    } catch (error) {
      refuse(error as Error)
    }
  }
}

const tails = perDatabase(db => new LogTail(db))

/** Follows an organization's log. `head` is the one that the request has read. */
export function followLog(
  { db, organization_id }: Context,
  head: Head,
  call: TailCall,
  selection: Selection,
): Subscriber {
  return tails(db).follow(organization_id, head, call, selection)
}

/** The number of requests that follow an organization's log. */
export const countSubscribers = ({ db, organization_id }: Context): number =>
  tails(db).countSubscribers(organization_id)
