import type { Summary } from './latencies.ts'

/** A load to send. */
export type Load = {
  address: string
  token: string
  /** The number of people, with the names p1 … p<people>. */
  people: number
  /** Must differ for each load on a service, because the names of created people contain it. */
  seed: number
  /** PATCHes of random people, a mix of all kinds of requests, or filters that no index serves. */
  work: 'patch' | 'mixed' | 'slowFilters'
  seconds: number
  /** Connections that are open from the start. */
  connections: number
  /** Whether the generator gets the highest process priority, to simulate a machine of its own. */
  isPrioritized?: boolean
} & (
  | { rate: undefined }
  /** An open loop: requests per second, independent of earlier responses, on at most `maxConnections`. */
  | { rate: number; maxConnections: number }
)

/** The results of a load. Latencies count from the time at which a request was due, and so include the wait for a connection. */
export type Figures = {
  seconds: number
  due: number
  answered: Summary
  /** Responses with 429 or 503. */
  refused: Summary
  /** Refusals without Retry-After. */
  withoutRetryAfter: number
  /** The number of responses with any other status, by status. */
  others: Record<string, number>
  /** Requests whose connection ended without a response. */
  broken: number
  /** Requests without a response 15 s after the end of the load. */
  unanswered: number
  connections: number
}
