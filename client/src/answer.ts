import { KithConnectionError, KithError } from './errors.ts'
import type { ErrorCode } from './wire.ts'

type Envelope = {
  status?: unknown
  data?: unknown
  error?: unknown
  message?: unknown
  details?: unknown
  request_id?: unknown
  errorstack?: unknown
  outcome?: unknown
  reason?: unknown
}

/**
 * The payload of a success envelope. Throws a {@link KithError} for an error envelope, and a {@link
 * KithConnectionError} for any other response.
 */
export function payloadOf(response: Response, text: string, nowMs: number): unknown {
  const envelope = parse(text)
  if (response.ok && envelope?.status === 'Success') return envelope.data
  if (!response.ok && typeof envelope?.error === 'string') throw buildKithError(response, envelope, nowMs)
  throw new KithConnectionError(
    `The response is not from kith: it has status ${response.status} and not the format of kith. Check the url.`,
    { status: response.status, retryAfterSeconds: secondsUntil(response.headers.get('retry-after'), nowMs) },
  )
}

function parse(text: string): Envelope | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

function buildKithError(response: Response, envelope: Envelope, nowMs: number): KithError {
  return new KithError({
    code: envelope.error as ErrorCode,
    status: response.status,
    message: typeof envelope.message === 'string' ? envelope.message : String(envelope.error),
    details: Array.isArray(envelope.details) ? envelope.details : [],
    request_id: typeof envelope.request_id === 'string' ? envelope.request_id : response.headers.get('x-request-id'),
    errorstack: (envelope.errorstack ?? null) as KithError['errorstack'],
    retryAfterSeconds: secondsUntil(response.headers.get('retry-after'), nowMs),
    reason: envelope.reason === 'erased' ? 'erased' : null,
    outcome: envelope.outcome === 'unknown' || envelope.outcome === 'done' ? envelope.outcome : null,
  })
}

/** The seconds that a `Retry-After` header asks for, as a number or as a date. Null if it is absent or invalid. */
export function secondsUntil(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header)
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - nowMs) / 1_000)
}
