import type { Signal } from './signal.ts'

/** The kinds of coalesced work. Reads are coalesced with reads, writes with writes. */
export type Work = 'read' | 'write'

/** An item of a queue: its time of arrival by performance.now(), and the signal of its request. */
export type QueuedItem = { signal?: Signal | undefined; sinceMs: number }

/** The end of a request. If `status` is undefined, the client disconnected before its response. */
export type RequestEnd = {
  method: string
  /** The template, such as `/v1/people/{external_id}`; undefined if no route matches. */
  route: string | undefined
  status: number | undefined
  durationMs: number
  /** The error code of the response, if it is a refusal. */
  error: string | undefined
}

/**
 * The reason why a standby did not answer a read: it is away or behind, lacks tables or the change, or the read
 * conflicted with its replay or writes.
 */
export type Fallback = 'away' | 'behind' | 'tables' | 'sequence' | 'conflict' | 'write'

/** The reason why load shedding refused a request before kith processed it. */
export type Overload = 'connection' | 'draining' | 'requests' | 'bytes' | 'connections' | 'share'

/**
 * Receives the events of the modules, which do not depend on metrics. A call costs about 10 ns. No argument may name an
 * organization, or have more different values as the data grows.
 */
export type Observer = {
  requestBegan(): void
  requestEnded(end: RequestEnd): void
  overloaded(reason: Overload): void
  /**
   * A statement ended. `parent` is the key of the parent span: the signal of a request or of a batch, or a transaction.
   */
  statement(name: string, startedMs: number, failed: boolean, parent: object | undefined): void
  /** A cache look-up ended. */
  cache(cache: 'token' | 'definitions' | 'statement', hit: boolean): void
  /**
   * A batch of waiting items starts. `signal` belongs to the batch. The caller calls the returned function at its end.
   */
  batch(work: Work, items: readonly QueuedItem[], signal: Signal): (() => void) | undefined
  /** A read ran on the primary although a standby is configured for it. */
  readFellBack(reason: Fallback): void
  /** The work of a follower of the change log failed, and will be retried. */
  followerFailed(follower: string): void
  /** An attempt to send a change to a webhook ended. After `failed`, it is not repeated. */
  delivered(outcome: DeliveryOutcome): void
  webhookDisabled(reason: 'gone' | 'failing'): void
  /** The retention follower has erased records, or removed the values of changes. */
  retentionEnded(kind: 'records' | 'changes' | 'accesses', count: number): void
  /** The access log recorded entries, or dropped them because the database stored none. */
  accesses(outcome: 'recorded' | 'dropped', count: number): void
  /** A mail provider sent events with a valid signature, which kith stored or ignored. */
  providerEvents(provider: string, outcome: 'stored' | 'ignored', count: number): void
  /** Lines of an import ended with this outcome. */
  imported(kind: 'people' | 'records', outcome: ImportOutcome, lines: number): void
  /** Absent if traces are off. */
  tracer?: Tracer | undefined
}

export type DeliveryOutcome = 'delivered' | 'retried' | 'failed'

export type ImportOutcome = 'created' | 'updated' | 'unchanged' | 'failed'

/** Ends a span, with an error status if `failed` is true. */
export type EndSpan = (failed?: boolean) => void

/**
 * Creates spans. The key of a span is the object that it represents: a request's signal, a batch's signal or a
 * transaction. Functions pass these objects anyway, so a child identifies its parent by this key.
 */
export type Tracer = {
  /** Starts the span of a request, as a child of the caller's span if `traceparent` names one. */
  request(signal: Signal, method: string, traceparent: string | undefined): void
  requestEnded(signal: Signal, end: RequestEnd): void
  /** The trace id, 32 hexadecimal digits; undefined if the signal has no span. */
  traceIdOf(signal: Signal): string | undefined
  batch(work: Work, items: readonly QueuedItem[], signal: Signal): () => void
  statement(name: string, startedMs: number, failed: boolean, parent: object | undefined): void
  /** Starts a child span of `parent`. `key` identifies it for its own children. */
  begin(name: string, parent: object | undefined, key?: object): EndSpan
}

/**
 * The lag of the followers of one name: the number of changes of all organizations, the number of these organizations,
 * and the age of the oldest change.
 */
export type FollowerLag = { name: string; changes: number; organizations: number; seconds: number }

/**
 * The webhooks of all organizations by state, and the deliveries of the active ones: `waiting` counts all, `retries`
 * those that wait for a retry, and `seconds` is the age of the oldest.
 */
export type WebhookStates = Record<'active' | 'failing' | 'disabled' | 'waiting' | 'retries' | 'seconds', number>

/** The metrics in Prometheus' text format. */
export type Scrape = { contentType: string; text: string }

export type Instruments = {
  observer: Observer
  /** The current metrics, of all workers if there are several. */
  scrape(): Promise<Scrape>
}
