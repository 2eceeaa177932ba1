import { setTimeout as pause } from 'node:timers/promises'
import type { LoggedChange } from '../changes/change-json.ts'
import { onCommit } from '../changes/commit-events.ts'
import { readChangesOf } from '../changes/read-changes.ts'
import { awaitPipelined } from '../db/db.ts'
import { FairPool } from '../fair-pool.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { matchValuesOf } from './events.ts'
import { disablement, isSuccess, judge, type Verdict } from './schedule.ts'
import type { DeliveryOutcome, Sender } from './send.ts'
import {
  advanceReplaySql,
  demoteDeliveriesSql,
  followerName,
  insertDeliveriesSql,
  matchChangesSql,
  promoteDeliveriesSql,
  readDueSql,
  readNextAttemptSql,
  readSendingSql,
  recordAttemptsSql,
  recordHealthSql,
} from './sql.ts'
import { activeSecrets, disableWebhook, type Secret, type WebhookRow } from './webhooks.ts'

export type DeliveryOptions = {
  sender: Sender
  nowMs?: () => number
  /** From 0 to 1, for the spread of the retries. */
  random?: () => number
  /** The limits of the requests of the process. */
  pools?: RequestPools
  /** Receives a webhook that was disabled. */
  onDisabled?: (webhook: { organization_id: number; id: number; reason: 'gone' | 'failing' }) => void
}

/** How many requests to a receiver run at a time. While it fails, one request finds out when it works again. */
const maxConcurrent = 16
const maxConcurrentFailing = 1
const changesPerBatch = 1_000
const duePerRead = 256
const bytesPerRead = 4_194_304
/** While requests are under way, the log is read again this often, for the commits of other processes. */
const lookMs = 250
/** Results and news of this time are stored together: each of them alone would take five statements. */
const batchMs = 20
/** How long requests under way may take when the process stops. */
const stopGraceMs = 1_000
/** The time of the last success is stored at most this often. */
const successStoreMs = 60_000

type RequestPools = { healthy: FairPool; failing: FairPool }

/**
 * The requests of a process to receivers that work, and to those that fail, so that receivers that never answer leave the others free.
 * An organization holds at most a quarter, and less than is left, so that those whose receivers are slow leave room for the next one:
 * four of them hold 51 of 256 each, where a quarter each would leave none.
 */
export function createRequestPools({ healthy = 256, failing = 64 } = {}): RequestPools {
  const poolOf = (max: number) => new FairPool({ max, share: Math.max(1, max >> 2), leavesRoom: true })
  return { healthy: poolOf(healthy), failing: poolOf(failing) }
}

type Sending = WebhookRow & {
  secrets: Secret[]
  replay_after: number | null
  replay_until: number | null
  log_id: string
  head: number
  /** The newest erasure of the organization. */
  erasure: number | null
}
type DeliveryRow = { sequence: number; entity: string; type: string; attempts: number }
/** `erasure` is the newest one before the change was read. */
type Due = DeliveryRow & { change: LoggedChange; erasure: number | null }
type Attempt = { due: Due; outcome: DeliveryOutcome; verdict: Verdict }
type Match = { sequence: number; entity: string; type: string }

/**
 * The follower of each webhook: it turns changes into deliveries, and sends those that are due. One process at a time does both, so
 * a change is never sent twice at a time. Results are stored after the response. If the process dies between them, the change is
 * sent again.
 */
export function webhookFollower(options: DeliveryOptions): Follower {
  const pools = options.pools ?? createRequestPools()
  return {
    name: followerName,
    isForEveryOrganization: false,
    maxConcurrent: 1_000,
    work: task => new Delivery(task, { ...options, pools }).run(),
  }
}

const iso = (ms: number) => new Date(ms).toISOString()

/** The work for one webhook, until nothing is due. */
class Delivery {
  readonly #task: Task
  readonly #options: DeliveryOptions & { pools: RequestPools }
  readonly #nowMs: () => number
  /** Requests under way, by the number of their change. */
  readonly #inFlight = new Map<number, Promise<void>>()
  #ended: Attempt[] = []
  /** Deliveries that are due and wait for one of the requests under way to end. */
  #queued: Due[] = []
  /** The webhook as last read; undefined while no request may start. */
  #sending: Sending | undefined
  #position: number
  #isOver = false
  /** Aborts requests under way. */
  readonly #requests = new AbortController()
  #wake = () => {}

  constructor(task: Task, options: DeliveryOptions & { pools: RequestPools }) {
    this.#task = task
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#position = task.after
  }

  async run(): Promise<Progress> {
    const { db, organization_id, signal } = this.#task
    const wake = () => this.#wake()
    const unsubscribe = onCommit(db, changed => {
      if (changed === organization_id) wake()
    })
    signal.addEventListener('abort', wake)
    try {
      return await this.#work()
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', wake)
      this.#sending = undefined
      this.#requests.abort()
      await Promise.all(this.#inFlight.values())
    }
  }

  async #work(): Promise<Progress> {
    const { signal } = this.#task
    for (;;) {
      const startedMs = performance.now()
      const webhook = await this.#read()
      if (!webhook?.active || signal.aborted || this.#isOver) return this.#finish()
      if (this.#ended.length > 0) await this.#store(webhook)
      if (this.#isOver) return this.#finish()
      const hasMore = await this.#queueNews(webhook)
      if (webhook.replay_after === null) await this.#sendDue(webhook)
      if (this.#inFlight.size > 0) await this.#untilSomethingHappens(startedMs)
      else if (this.#ended.length === 0 && !hasMore) {
        const next = await this.#nextAttemptMs()
        if (next === undefined || next > this.#nowMs()) return { sequence: this.#position, wakeAtMs: next }
      }
    }
  }

  async #read(): Promise<Sending | undefined> {
    const { db, organization_id, id } = this.#task
    const [webhook] = await db.query<Sending>(readSendingSql, [organization_id, id])
    return webhook
  }

  /** Ends the work early: waits a moment for requests under way, stores their results, and lets the next process go on. */
  async #finish(): Promise<Progress> {
    this.#sending = undefined
    // Another process may already send the same deliveries.
    if (!this.#task.isHeld()) this.#requests.abort()
    const timer = setTimeout(() => this.#requests.abort(), stopGraceMs)
    await Promise.all(this.#inFlight.values())
    clearTimeout(timer)
    const webhook = await this.#read()
    if (webhook && this.#ended.length > 0) await this.#store(webhook)
    return { sequence: this.#position, wakeAtMs: this.#nowMs() }
  }

  /** Turns the next changes into deliveries, together with the position. Returns whether more follow. */
  async #queueNews(webhook: Sending): Promise<boolean> {
    const { id, head, replay_after, replay_until } = webhook
    const { organization_id, db, hold, advance } = this.#task
    if (replay_after !== null && replay_until !== null) {
      // Earlier changes of an entity may only be queued while no later one is on its way.
      this.#sending = undefined
      this.#queued = []
      if (this.#inFlight.size > 0) return true
      const until = Math.min(replay_until, replay_after + changesPerBatch)
      const matches = await this.#match(webhook, replay_after, until)
      const entities = entitiesOf(matches)
      await db.transaction(async tx => {
        await hold(tx)
        await awaitPipelined([
          tx.query(demoteDeliveriesSql, [organization_id, id, entities]),
          ...this.#insert(tx, matches, entities),
          tx.query(advanceReplaySql, [organization_id, id, until]),
        ])
      })
      return true
    }
    if (this.#position >= head) return false
    const until = Math.min(head, this.#position + changesPerBatch)
    const matches = await this.#match(webhook, this.#position, until)
    await db.transaction(async tx => {
      await awaitPipelined([advance(tx, until), ...this.#insert(tx, matches, entitiesOf(matches))])
    })
    this.#position = until
    return until < head
  }

  #match(webhook: Sending, after: number, until: number): Promise<Match[]> {
    const { db, organization_id } = this.#task
    return db.query<Match>(matchChangesSql, [organization_id, after, until, ...matchValuesOf(webhook)])
  }

  #insert(tx: Parameters<Task['hold']>[0], matches: Match[], entities: string[]): Promise<unknown>[] {
    if (matches.length === 0) return []
    const { organization_id, id } = this.#task
    const at = iso(this.#nowMs())
    return [
      tx.query(insertDeliveriesSql, [organization_id, id, JSON.stringify(matches), at]),
      tx.query(promoteDeliveriesSql, [organization_id, id, entities, at]),
    ]
  }

  async #sendDue(webhook: Sending): Promise<void> {
    // A change that was read before an erasure may have values that were erased.
    this.#queued = this.#queued.filter(({ erasure }) => erasure === webhook.erasure)
    if (this.#queued.length < maxConcurrent) this.#queued.push(...(await this.#readDue(webhook)))
    this.#sending = webhook
    this.#sendQueued()
  }

  /** Starts requests, up to the number that may run at a time. Each one that ends starts the next. */
  #sendQueued(): void {
    const webhook = this.#sending
    if (!webhook) return
    const max = webhook.failing_since === null ? maxConcurrent : maxConcurrentFailing
    while (this.#inFlight.size < max && this.#queued.length > 0) {
      const due = this.#queued.shift()!
      const sending = this.#attempt(webhook, due).finally(() => {
        this.#inFlight.delete(due.sequence)
        this.#sendQueued()
        this.#wake()
      })
      this.#inFlight.set(due.sequence, sending)
    }
  }

  async #readDue({ erasure }: Sending): Promise<Due[]> {
    const { db, organization_id, id } = this.#task
    const ended = this.#ended.map(({ due }) => due.sequence)
    const busy = [...this.#inFlight.keys(), ...ended, ...this.#queued.map(({ sequence }) => sequence)]
    const values = [organization_id, id, iso(this.#nowMs()), busy, duePerRead]
    const rows = new Map((await db.query<DeliveryRow>(readDueSql, values)).map(row => [row.sequence, row]))
    if (rows.size === 0) return []
    const changes = await readChangesOf(db, organization_id, [...rows.keys()], bytesPerRead)
    return changes.map(change => ({ ...rows.get(change.sequence)!, change, erasure }))
  }

  /** Sends one delivery. Never rejects: an attempt that was aborted has no result, and is made again. */
  async #attempt(webhook: Sending, due: Due): Promise<void> {
    const { organization_id, isHeld } = this.#task
    const { sender, pools, random = Math.random } = this.#options
    const signal = this.#requests.signal
    const end = (outcome: DeliveryOutcome) => {
      this.#ended.push({ due, outcome, verdict: judge(outcome, due.attempts + 1, this.#nowMs(), random()) })
      // The next request waits until it is stored that the receiver fails.
      if (!isSuccess(outcome)) this.#sending = undefined
    }
    try {
      const pool = webhook.failing_since === null ? pools.healthy : pools.failing
      const release = await pool.take(organization_id, signal)
      try {
        if (!isHeld()) return
        const nowMs = this.#nowMs()
        const message = {
          url: webhook.url,
          id: `${webhook.log_id}:${due.sequence}`,
          body: bodyOf(due.type, due.change, webhook.payload),
          secrets: activeSecrets(webhook.secrets, nowMs),
        }
        end(await sender.send(message, signal))
      } finally {
        release()
      }
    } catch (error) {
      // One change that cannot be sent holds up no other one.
      if (!signal.aborted) end({ error: `The request could not be made (${(error as Error).name}).`, durationMs: 0 })
    }
  }

  /** Stores the results, and makes the next change of each entity due. */
  async #store(webhook: Sending): Promise<void> {
    const { db, organization_id, id, hold } = this.#task
    const ended = this.#ended
    this.#ended = []
    const nowMs = this.#nowMs()
    const at = iso(nowMs)
    const settled = [
      ...new Set(ended.filter(({ verdict }) => verdict.status !== 'waiting').map(({ due }) => due.entity)),
    ]
    const health = healthOf(webhook, ended, nowMs)
    const numbers = ended.map(({ due }) => due.sequence)
    const results = Object.fromEntries(ended.map(attempt => [attempt.due.sequence, resultOf(attempt)]))
    await db.transaction(async tx => {
      await hold(tx)
      await awaitPipelined([
        tx.query(recordAttemptsSql, [organization_id, id, JSON.stringify(results), at, numbers]),
        ...(settled.length > 0 ? [tx.query(promoteDeliveriesSql, [organization_id, id, settled, at])] : []),
        ...(health ? [tx.query(recordHealthSql, [organization_id, id, health.failing_since, health.success])] : []),
      ])
    })
    for (const { verdict } of ended) db.observer?.delivered(verdict.status === 'waiting' ? 'retried' : verdict.status)
    if (health) webhook.failing_since = health.failing_since
    await this.#disableIfNeeded(webhook, ended, nowMs)
  }

  async #disableIfNeeded(webhook: Sending, ended: Attempt[], nowMs: number): Promise<void> {
    const { db, organization_id, id } = this.#task
    const sinceMs = webhook.failing_since === null ? nowMs : Date.parse(webhook.failing_since)
    const failed = ended.filter(({ outcome }) => !isSuccess(outcome))
    const reason = failed.map(({ outcome }) => disablement(outcome, sinceMs, nowMs)).find(each => each !== undefined)
    if (reason === undefined) return
    this.#isOver = true
    if (!(await disableWebhook(db, organization_id, id, reason, nowMs))) return
    db.observer?.webhookDisabled(reason)
    this.#options.onDisabled?.({ organization_id, id, reason })
  }

  async #nextAttemptMs(): Promise<number | undefined> {
    const { db, organization_id, id } = this.#task
    const [next] = await db.query<{ at: string | null }>(readNextAttemptSql, [organization_id, id])
    return next?.at ? Date.parse(next.at) : undefined
  }

  /**
   * Waits until a request ends, a commit wakes the work, or it is time to look at the log again, and until the batch that
   * began at `startedMs` is over.
   */
  async #untilSomethingHappens(startedMs: number): Promise<void> {
    if (this.#ended.length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, lookMs)
      this.#wake = resolve
      await promise
      clearTimeout(timer)
      this.#wake = () => {}
    }
    const restMs = startedMs + batchMs - performance.now()
    if (restMs > 0) await pause(restMs)
  }
}

const entitiesOf = (matches: Match[]) => [...new Set(matches.map(({ entity }) => entity))]

/** A result in the format of {@link recordAttemptsSql}. */
function resultOf({ due, outcome, verdict }: Attempt) {
  const { status, durationMs, response, error } = outcome
  return {
    status: verdict.status,
    attempts: due.attempts + 1,
    next_attempt_at: verdict.status === 'waiting' ? iso(verdict.nextAttemptMs) : null,
    response_status: status ?? null,
    duration_ms: durationMs,
    response: response ?? null,
    error: error ?? null,
    erasure: due.erasure,
  }
}

/** Returns the health of the receiver, if it has to be stored: since when it fails, and the time of a success. */
function healthOf({ failing_since, last_success_at }: Sending, ended: Attempt[], nowMs: number) {
  const hasSuccess = ended.some(({ outcome }) => isSuccess(outcome))
  const isFailing = !isSuccess(ended.at(-1)!.outcome)
  const since = isFailing ? (hasSuccess ? iso(nowMs) : (failing_since ?? iso(nowMs))) : null
  const isStale = last_success_at === null || nowMs - Date.parse(last_success_at) > successStoreMs
  const success = hasSuccess && (isStale || since !== failing_since) ? iso(nowMs) : null
  return since === failing_since && success === null ? undefined : { failing_since: since, success }
}

/**
 * The body of a request, in the form of Standard Webhooks. With `ids`, it has no values: also no external identifier, which may be
 * an email address.
 */
function bodyOf(type: string, { at, json }: LoggedChange, payload: 'full' | 'ids'): string {
  const data = payload === 'full' ? json : reduceToIds(json)
  return `{"type":${JSON.stringify(type)},"timestamp":"${at}","data":${data}}`
}

function reduceToIds(json: string): string {
  const { sequence, at, subject, id, stack_key, operation, version } = JSON.parse(json)
  return JSON.stringify({ sequence, at, subject, id, stack_key, operation, version })
}
