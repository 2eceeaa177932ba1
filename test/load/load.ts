import type { Summary } from './latencies.ts'

/** What is asked of the service. */
export type Load = {
  address: string
  token: string
  /** The people are called p1 … p<people>. */
  people: number
  /** Another for each load on a service: what is created bears it in its name. */
  seed: number
  /** PATCHes of random people, a mixture of what is asked of the service, or filters that no index helps. */
  work: 'patch' | 'mixed' | 'slowFilters'
  seconds: number
  /** Connections that are open from the start. */
  connections: number
  /** Whether its generator goes before all others on this machine, as one on a machine of its own would. */
  ahead?: boolean
} & (
  | { rate: undefined }
  /** Requests a second that are due whatever becomes of the earlier ones, on up to so many connections. */
  | { rate: number; mostConnections: number }
)

/** What became of them. Durations count from the moment at which a request was due, waiting for a connection included. */
export type Figures = {
  seconds: number
  due: number
  answered: Summary
  /** 429 and 503. */
  refused: Summary
  /** Refusals that do not say when to come again. */
  withoutRetryAfter: number
  /** Answers of any other status, by status. */
  others: Record<string, number>
  /** Requests whose connection ended instead of an answer. */
  broken: number
  /** Requests that had no answer within the patience after the end. */
  unanswered: number
  connections: number
}
