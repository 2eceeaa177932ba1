import type { DeliveryOutcome } from './send.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The delays after each failed attempt. After the last one, the delivery fails for good. */
export const retryWaitsMs: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]
const jitter = 0.1
const maxRetryAfterMs = 24 * hour
/** A webhook is disabled after this time without a success. */
const patienceMs = 5 * 24 * hour

export type Verdict = { status: 'delivered' } | { status: 'waiting'; nextAttemptMs: number } | { status: 'failed' }

export const isSuccess = ({ status }: DeliveryOutcome): boolean => status !== undefined && status >= 200 && status < 300

/** Decides what follows an attempt. `attempts` includes it. `random` is a number from 0 to 1. */
export function judge(outcome: DeliveryOutcome, attempts: number, nowMs: number, random: number): Verdict {
  if (isSuccess(outcome)) return { status: 'delivered' }
  const waitMs = retryWaitsMs[attempts - 1]
  if (waitMs === undefined) return { status: 'failed' }
  const spreadMs = waitMs * (1 + jitter * (2 * random - 1))
  const askedMs = Math.min((outcome.retryAfterSeconds ?? 0) * second, maxRetryAfterMs)
  return { status: 'waiting', nextAttemptMs: Math.round(nowMs + Math.max(spreadMs, askedMs)) }
}

/**
 * Returns the reason to disable a webhook after a failed attempt: its receiver is gone, or it has failed for too long.
 */
export function disablement(
  outcome: DeliveryOutcome,
  failingSinceMs: number,
  nowMs: number,
): 'gone' | 'failing' | undefined {
  if (outcome.status === 410) return 'gone'
  return nowMs - failingSinceMs >= patienceMs ? 'failing' : undefined
}
