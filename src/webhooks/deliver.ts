import { setTimeout as pause } from 'node:timers/promises'
import type { LoggedChange } from '../changes/change-json.ts'
import { readChangesOf } from '../changes/read-changes.ts'
import { awaitPipelined, masterKeysOf } from '../db/db.ts'
import type { Follower, Progress, Task } from '../followers/follower.ts'
import { FairPool } from '../process/fair-pool.ts'
import { type Confirmation, readConfirmations } from './confirmations.ts'
import { eventTypeOf, matchValuesOf } from './events.ts'
import type { RequestHeaders } from './request-headers.ts'
import { disablement, isSuccess, judge, type Verdict } from './schedule.ts'
import { type DeliveryOutcome, outcomeColumns, type Sender } from './send.ts'
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
import { activeSecrets, type Secret, type StoredSecrets, unwrapSending } from './stored-secrets.ts'
import { disableWebhook, type WebhookRow } from './webhooks.ts'

export type DeliveryOptions = {
  sender: Sender
  nowMs?: () => number
  /** Returns a number from 0 to 1 that spreads the retries. */
  random?: () => number
  pools?: RequestPools
  /** The beginning of the links in events. Undefined if kith does not know its own address. */
  linkBase?: () => string | undefined
  /** The duration of a round. Tests use a shorter one. */
  roundMs?: number
  onDisabled?: (webhook: { organization_id: number; id: number; reason: 'gone' | 'failing' }) => void
}

/**
 * The maximum number of concurrent requests to a receiver. A failing receiver gets one request at a time, until it
 * works again.
 */
const maxConcurrent = 16
const maxConcurrentFailing = 1
const changesPerBatch = 1_000
const entitiesPerRead = 256
const duePerEntity = 16
const bytesPerRead = 4_194_304
/**
 * The duration of a round. Its results and news are stored and read together, so a change that comes after the first
 * one waits for the next round.
 */
const defaultRoundMs = 250
/** The duration of a round with a failed request, or with more to do than it may read at a time. */
const minRoundMs = 20
/** The time that requests under way get when the process stops. */
const stopGraceMs = 1_000
/** The minimum interval between two stores of the time of the last success. */
const successStoreMs = 60_000

type RequestPools = { healthy: FairPool; failing: FairPool }

/**
 * The concurrent requests of a process, in separate pools for working and for failing receivers, so that receivers that
 * never answer do not block the others. An organization gets at most a quarter of a pool, and less than the remaining
 * room, so that slow receivers leave room for the next organization: four organizations hold 51 of 256 each, where a
 * quarter each would fill the pool.
 */
export function createRequestPools({ healthy = 256, failing = 64 } = {}): RequestPools {
  const poolOf = (max: number) => new FairPool({ max, share: Math.max(1, max >> 2), leavesRoom: true })
  return { healthy: poolOf(healthy), failing: poolOf(failing) }
}

type Sending = WebhookRow & {
  secrets: Secret[]
  request_headers: RequestHeaders
  replay_after: number | null
  replay_until: number | null
  log_id: string
  head: number
  erasure: number | null
}
type DeliveryRow = { sequence: number; entity: string; type: string; attempts: number }
/**
 * `erasure` is the newest erasure before the change was read. `carried` are the links of the event, or the reason why
 * it cannot have them.
 */
type Due = DeliveryRow & { change: LoggedChange; erasure: number | null; carried: Confirmation[] | string | undefined }
/**
 * The next deliveries of one entity in order. Each is sent after the previous one has arrived. A full line may have
 * more deliveries in the database.
 */
type Line = { deliveries: Due[]; isFull: boolean }
type Attempt = { due: Due; outcome: DeliveryOutcome; verdict: Verdict }
type Match = { sequence: number; entity: string; type: string }
type MatchedChange = Omit<Match, 'type'> & Pick<LoggedChange, 'subject' | 'operation'>
/** The changes, up to a number, that match a webhook. */
type News = { until: number; matches: Match[] }

/**
 * The follower of each webhook turns changes into deliveries, and sends the due ones. Only one process at a time does
 * both, so a change is never sent twice concurrently. Results are stored after the response. If the process dies in
 * between, the next one sends the changes again.
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

/** The work for one webhook, in rounds until nothing is due. */
class Delivery {
  readonly #task: Task
  readonly #options: DeliveryOptions & { pools: RequestPools }
  readonly #nowMs: () => number
  /** Requests under way, by entity. */
  readonly #inFlight = new Map<string, Promise<void>>()
  #ended: Attempt[] = []
  /** Deliveries that wait for a free request. */
  #queued: Line[] = []
  /** The webhook as last read. Undefined while no request may start. */
  #sending: Sending | undefined
  #position: number
  /** Whether the round ends early, because a request has failed or more deliveries can be sent than were read. */
  #isUrgent = false
  /** Whether the round has left deliveries or changes that the next one may read. */
  #hasMore = false
  #isOver = false
  readonly #requests = new AbortController()
  #wake = () => {}

  constructor(task: Task, options: DeliveryOptions & { pools: RequestPools }) {
    this.#task = task
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#position = task.after
  }

  async run(): Promise<Progress> {
    const { signal } = this.#task
    const wake = () => this.#wake()
    signal.addEventListener('abort', wake)
    try {
      return await this.#work()
    } finally {
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
      this.#isUrgent = false
      this.#hasMore = false
      const webhook = await this.#read()
      if (!webhook?.active || signal.aborted || this.#isOver) return this.#finish()
      const isReplaying = webhook.replay_after !== null
      const news = isReplaying ? undefined : await this.#readNews(webhook)
      // At the end, the task stores the position up to which no change matches.
      const isIdle = this.#ended.length === 0 && news?.matches.length === 0 && news.until === webhook.head
      if (isIdle) this.#position = webhook.head
      else if (news || this.#ended.length > 0) await this.#store(webhook, news)
      if (this.#isOver) return this.#finish()
      if (isReplaying) await this.#queueReplay(webhook)
      else await this.#sendDue(webhook)
      if ((!news || isIdle) && !isReplaying && this.#inFlight.size === 0 && this.#ended.length === 0) {
        const next = await this.#nextAttemptMs()
        if (next === undefined || next > this.#nowMs()) return { sequence: this.#position, wakeAtMs: next }
      }
      await this.#untilNextRound(startedMs)
    }
  }

  async #read(): Promise<Sending | undefined> {
    const { db, organization_id, id } = this.#task
    type Stored = Omit<Sending, 'secrets'> & StoredSecrets
    const [webhook] = await db.query<Stored>(readSendingSql, [organization_id, id])
    return webhook && unwrapSending(masterKeysOf(db), { organization_id, id }, webhook)
  }

  /**
   * Ends the work early: waits briefly for requests under way, stores their results, and lets the next process
   * continue.
   */
  async #finish(): Promise<Progress> {
    this.#sending = undefined
    // Another process may already be sending the same deliveries.
    if (!this.#task.isHeld()) this.#requests.abort()
    const timer = setTimeout(() => this.#requests.abort(), stopGraceMs)
    await Promise.all(this.#inFlight.values())
    clearTimeout(timer)
    const webhook = await this.#read()
    if (webhook && this.#ended.length > 0) await this.#store(webhook)
    return { sequence: this.#position, wakeAtMs: this.#nowMs() }
  }

  async #readNews(webhook: Sending): Promise<News | undefined> {
    const { head } = webhook
    if (this.#position >= head) return undefined
    const until = Math.min(head, this.#position + changesPerBatch)
    if (until < head) this.#hasMore = true
    return { until, matches: await this.#match(webhook, this.#position, until) }
  }

  /**
   * Turns the next changes of a replay into deliveries. Earlier changes of an entity are queued only while no request
   * has a later one.
   */
  async #queueReplay(webhook: Sending): Promise<void> {
    const { organization_id, id, db, hold } = this.#task
    this.#isUrgent = true
    this.#sending = undefined
    this.#queued = []
    if (this.#inFlight.size > 0) return
    const after = webhook.replay_after!
    const until = Math.min(webhook.replay_until!, after + changesPerBatch)
    const matches = await this.#match(webhook, after, until)
    const entities = entitiesOf(matches)
    const at = iso(this.#nowMs())
    await db.transaction(tx =>
      awaitPipelined([
        hold(tx),
        tx.query(demoteDeliveriesSql, [organization_id, id, entities]),
        tx.query(insertDeliveriesSql, [organization_id, id, JSON.stringify(matches), at]),
        tx.query(promoteDeliveriesSql, [organization_id, id, entities, at]),
        tx.query(advanceReplaySql, [organization_id, id, until]),
      ]),
    )
  }

  async #match(webhook: Sending, after: number, until: number): Promise<Match[]> {
    const { db, organization_id } = this.#task
    const values = [organization_id, after, until, ...matchValuesOf(webhook)]
    const changes = await db.query<MatchedChange>(matchChangesSql, values)
    return changes.map(({ subject, operation, ...match }) => ({ ...match, type: eventTypeOf(subject, operation) }))
  }

  async #sendDue(webhook: Sending): Promise<void> {
    this.#sending = webhook
    // A change that was read before an erasure may contain erased values.
    this.#queued = this.#queued.filter(({ deliveries }) => deliveries[0]!.erasure === webhook.erasure)
    if (this.#queued.length < maxConcurrent) this.#queued.push(...(await this.#readDue(webhook)))
    this.#sendQueued()
  }

  /** Starts requests up to the maximum number. Each finished request starts the next one. */
  #sendQueued(): void {
    const webhook = this.#sending
    if (!webhook) return
    const max = webhook.failing_since === null ? maxConcurrent : maxConcurrentFailing
    while (this.#inFlight.size < max && this.#queued.length > 0) {
      const line = this.#queued.shift()!
      const due = line.deliveries.shift()!
      // The round found an erasure while the previous delivery of the line was under way.
      if (due.erasure !== webhook.erasure) continue
      const sending = this.#attempt(webhook, due).then(isDelivered => this.#afterAttempt(due, line, isDelivered))
      this.#inFlight.set(due.entity, sending)
    }
    if (this.#hasMore && this.#queued.length < maxConcurrent) this.#isUrgent = true
  }

  #afterAttempt({ entity }: Due, line: Line, isDelivered: boolean): void {
    this.#inFlight.delete(entity)
    if (isDelivered && line.deliveries.length > 0) this.#queued.push(line)
    else if (!isDelivered || line.isFull) this.#isUrgent = true
    this.#sendQueued()
    this.#wake()
  }

  /** Reads the due deliveries of entities without a request under way, and the deliveries that wait for them. */
  async #readDue({ erasure, links: hasLinks }: Sending): Promise<Line[]> {
    const { db, organization_id, id } = this.#task
    const queued = this.#queued.map(({ deliveries }) => deliveries[0]!.entity)
    const busy = [...this.#inFlight.keys(), ...queued, ...this.#ended.map(({ due }) => due.entity)]
    const values = [organization_id, id, iso(this.#nowMs()), busy, entitiesPerRead, duePerEntity]
    const rows = new Map((await db.query<DeliveryRow>(readDueSql, values)).map(row => [row.sequence, row]))
    if (rows.size === 0) return []
    const changes = await readChangesOf(this.#task, [...rows.keys()], bytesPerRead)
    const links = { base: this.#options.linkBase?.(), nowMs: this.#nowMs() }
    const carriedBy = hasLinks ? await readConfirmations(this.#task, changes, links) : undefined
    const due = changes.map(change => {
      return { ...rows.get(change.sequence)!, change, erasure, carried: carriedBy?.get(change.sequence) }
    })
    const lines = [...Map.groupBy(due, ({ entity }) => entity).values()]
    if (lines.length === entitiesPerRead || changes.length < rows.size) this.#hasMore = true
    return lines.map(deliveries => ({ deliveries, isFull: deliveries.length === duePerEntity }))
  }

  /**
   * Sends one delivery. Returns whether it has arrived. Never rejects: an aborted attempt has no result and is
   * repeated.
   */
  async #attempt(webhook: Sending, due: Due): Promise<boolean> {
    const { organization_id, isHeld } = this.#task
    const { sender, pools, random = Math.random } = this.#options
    const { carried } = due
    const signal = this.#requests.signal
    const end = (outcome: DeliveryOutcome) => {
      this.#ended.push({ due, outcome, verdict: judge(outcome, due.attempts + 1, this.#nowMs(), random()) })
      // The next request waits until the failure of the receiver has been stored.
      if (!isSuccess(outcome)) this.#sending = undefined
      return isSuccess(outcome)
    }
    if (typeof carried === 'string') return end({ error: carried, durationMs: 0 })
    try {
      const pool = webhook.failing_since === null ? pools.healthy : pools.failing
      const release = await pool.take(organization_id, signal)
      try {
        if (!isHeld()) return false
        const nowMs = this.#nowMs()
        const message = {
          url: webhook.url,
          id: `${webhook.log_id}:${due.sequence}`,
          body: bodyOf(due.type, due.change, webhook.payload, carried),
          secrets: activeSecrets(webhook.secrets, nowMs),
          headers: webhook.request_headers,
        }
        return end(withoutLinks(await sender.send(message, signal), carried))
      } finally {
        release()
      }
    } catch (error) {
      // A change that cannot be sent does not block others.
      if (signal.aborted) return false
      return end({ error: `The request could not be made (${(error as Error).name}).`, durationMs: 0 })
    }
  }

  /**
   * Stores the results, stores the news as deliveries together with the position, and makes the next change of each
   * entity due.
   */
  async #store(webhook: Sending, news?: News): Promise<void> {
    const { db, organization_id, id, hold, advance } = this.#task
    const ended = this.#ended
    this.#ended = []
    const nowMs = this.#nowMs()
    const at = iso(nowMs)
    const settled = ended.filter(({ verdict }) => verdict.status !== 'waiting').map(({ due }) => due)
    const matches = news?.matches ?? []
    const entities = entitiesOf([...settled, ...matches])
    const health = healthOf(webhook, ended, nowMs)
    const numbers = ended.map(({ due }) => due.sequence)
    const results = Object.fromEntries(ended.map(attempt => [attempt.due.sequence, resultOf(attempt)]))
    const key = [organization_id, id] as const
    const storing = db.transaction(tx =>
      awaitPipelined([
        news ? advance(tx, news.until) : hold(tx),
        ...(ended.length > 0 ? [tx.query(recordAttemptsSql, [...key, JSON.stringify(results), at, numbers])] : []),
        ...(matches.length > 0 ? [tx.query(insertDeliveriesSql, [...key, JSON.stringify(matches), at])] : []),
        ...(entities.length > 0 ? [tx.query(promoteDeliveriesSql, [...key, entities, at])] : []),
        ...(health ? [tx.query(recordHealthSql, [...key, health.failing_since, health.success])] : []),
      ]),
    )
    await storing.catch(async error => {
      // If a change cannot be stored as a delivery, the results must be stored nevertheless, so that no arrived
      // delivery is repeated.
      this.#ended = [...ended, ...this.#ended]
      if (news && ended.length > 0) await this.#store(webhook)
      throw error
    })
    if (news) this.#position = news.until
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
    if (!(await disableWebhook(this.#task, id, reason, nowMs))) return
    db.observer?.webhookDisabled(reason)
    this.#options.onDisabled?.({ organization_id, id, reason })
  }

  async #nextAttemptMs(): Promise<number | undefined> {
    const { db, organization_id, id } = this.#task
    const [next] = await db.query<{ at: string | null }>(readNextAttemptSql, [organization_id, id])
    return next?.at ? Date.parse(next.at) : undefined
  }

  /** Waits for the end of the round that began at `startedMs`. */
  async #untilNextRound(startedMs: number): Promise<void> {
    const { signal } = this.#task
    const { roundMs = defaultRoundMs } = this.#options
    const restOf = (lengthMs: number) => startedMs + lengthMs - performance.now()
    if (this.#inFlight.size > 0 && restOf(minRoundMs) > 0) await pause(restOf(minRoundMs))
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, Math.max(0, restOf(roundMs)))
    this.#wake = () => {
      if (this.#isUrgent || signal.aborted) resolve()
    }
    this.#wake()
    await promise
    clearTimeout(timer)
    this.#wake = () => {}
  }
}

const entitiesOf = (all: { entity: string }[]) => [...new Set(all.map(({ entity }) => entity))]

/** A result in the format of {@link recordAttemptsSql}. */
function resultOf({ due, outcome, verdict }: Attempt) {
  return {
    status: verdict.status,
    attempts: due.attempts + 1,
    next_attempt_at: verdict.status === 'waiting' ? iso(verdict.nextAttemptMs) : null,
    ...outcomeColumns(outcome),
    erasure: due.erasure,
  }
}

/** Returns the health of the receiver if it has to be stored: the start of its failures, and the time of a success. */
function healthOf({ failing_since, last_success_at }: Sending, ended: Attempt[], nowMs: number) {
  if (ended.length === 0) return undefined
  const hasSuccess = ended.some(({ outcome }) => isSuccess(outcome))
  const isFailing = !isSuccess(ended.at(-1)!.outcome)
  const since = isFailing ? (hasSuccess ? iso(nowMs) : (failing_since ?? iso(nowMs))) : null
  const isStale = last_success_at === null || nowMs - Date.parse(last_success_at) > successStoreMs
  const success = hasSuccess && (isStale || since !== failing_since) ? iso(nowMs) : null
  return since === failing_since && success === null ? undefined : { failing_since: since, success }
}

/**
 * The body of a request in the form of Standard Webhooks, with its confirmations. With `ids`, it has no values, not
 * even the external identifier, which may be an email address.
 */
function bodyOf(
  type: string,
  { at, json }: LoggedChange,
  payload: 'full' | 'ids',
  confirmations: Confirmation[] | undefined,
): string {
  const data = payload === 'full' ? json : reduceToIds(json)
  const carried = confirmations ? `,"confirmations":${JSON.stringify(confirmations)}` : ''
  return `{"type":${JSON.stringify(type)},"timestamp":"${at}","data":${data}${carried}}`
}

/** Removes links from the response in an outcome, because kith stores it, and anyone with a link can use it. */
function withoutLinks(outcome: DeliveryOutcome, confirmations: Confirmation[] = []): DeliveryOutcome {
  if (outcome.response === undefined) return outcome
  const response = confirmations.reduce(
    (text, { confirm_url }) => text.replaceAll(confirm_url, '[link]'),
    outcome.response,
  )
  return { ...outcome, response }
}

function reduceToIds(json: string): string {
  const { sequence, at, subject, id, stack_key, operation, version } = JSON.parse(json)
  return JSON.stringify({ sequence, at, subject, id, stack_key, operation, version })
}
