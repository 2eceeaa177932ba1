import type { Signal } from './signal.ts'

/** What is coalesced: reads with reads, writes with writes. */
export type Work = 'read' | 'write'

/** One that came into a queue: when (as performance.now() has it), and the signal of the request it belongs to. */
export type Arrived = { signal?: Signal | undefined; sinceMs: number }

/** How a request ended. Without a status nobody took its answer: the client went away. */
export type RequestEnd = {
  method: string
  /** The template, `/v1/people/{external_id}`; undefined where there is no such address. */
  route: string | undefined
  status: number | undefined
  durationMs: number
  /** The word of the refusal that was answered. */
  error: string | undefined
}

/** Why a request was turned away before any work was done for it. */
export type Overload = 'connection' | 'draining' | 'requests' | 'bytes' | 'slow' | 'busy' | 'connections' | 'share'

/**
 * What the rooms tell of their work to whoever wants to count it. They know nothing of metrics: a call costs some ten
 * nanoseconds, and nothing that is told may grow with the data, nor belong to an organization.
 */
export type Observer = {
  requestBegan(): void
  requestEnded(end: RequestEnd): void
  overloaded(reason: Overload): void
  /** A statement was answered, or failed. `under` is what its span hangs on: a request's signal, a batch's, a transaction. */
  statement(name: string, begunMs: number, failed: boolean, under: object | undefined): void
  /** Something was looked for in what is remembered. */
  cache(cache: 'token' | 'definitions', hit: boolean): void
  /** A batch of those who waited begins; `signal` is its own. What is returned ends it. */
  batch(work: Work, arrived: readonly Arrived[], signal: Signal): (() => void) | undefined
  /** So many lines of an import came to this end. */
  imported(kind: 'people' | 'records', outcome: ImportOutcome, lines: number): void
  /** Absent unless traces are wanted. */
  tracer?: Tracer | undefined
}

export type ImportOutcome = 'created' | 'updated' | 'unchanged' | 'failed'

/** Ends a span; with an error where it failed. */
export type EndSpan = (failed?: boolean) => void

/**
 * Makes spans. What a span stands for, a request's signal, a batch's signal or a transaction, is what its children name
 * as their parent: it is handed from function to function anyway.
 */
export type Tracer = {
  /** The span of a request, which follows the caller's where `traceparent` names one. */
  request(signal: Signal, method: string, traceparent: string | undefined): void
  requestEnded(signal: Signal, end: RequestEnd): void
  /** 32 hexadecimal digits; undefined of what has no span. */
  traceIdOf(signal: Signal): string | undefined
  batch(work: Work, arrived: readonly Arrived[], signal: Signal): () => void
  statement(name: string, begunMs: number, failed: boolean, under: object | undefined): void
  /** A stage below `under`; `self` stands for it from now on. */
  begin(name: string, under: object | undefined, self?: object): EndSpan
}

/** The metrics in Prometheus' text format. */
export type Scrape = { contentType: string; text: string }

export type Instruments = {
  observer: Observer
  /** All metrics as they stand; with several workers, those of all. */
  scrape(): Promise<Scrape>
}
