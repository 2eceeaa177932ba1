import { createRefusal, type Refusal } from '../../errors.ts'

/** Builds a refusal of a request that another moment may admit. */
const refuseForNow = (message: string): Refusal =>
  createRefusal('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })

/** The refusal of a request without a free slot. */
export const overloaded = refuseForNow('The service is overloaded. Retry after 1 second.')

/** Pipelined requests that one connection may have under way. Node starts each as it arrives: 10,000 at once. */
export const maxPipelined = 32

export const tooManyPipelined = refuseForNow(
  `A connection may have at most ${maxPipelined} requests under way. Open a new connection and retry after 1 second.`,
)

export const draining = refuseForNow('The service is shutting down. Retry after 1 second.')
