import { isFailure, KithConnectionError, KithError } from './errors.ts'
import { createWatchdog } from './watchdog.ts'
import type { ErrorCode } from './wire.ts'

type Parsed = Readonly<Record<string, unknown>>

/**
 * Fetches a response and reads it within a time. Throws what `read` throws, the reason of the signal, and the client's errors if there is
 * no response.
 */
export async function fetchWithin<T>(
  fetchFunction: typeof fetch,
  url: string,
  init: RequestInit,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const watchdog = createWatchdog(signal)
  // A redirect could send a write to another host, or turn it into a GET, so it counts as a response that is not from
  // kith.
  const request = { ...init, redirect: 'manual', signal: watchdog.signal } as const
  try {
    return await watchdog.within(fetchFunction(url, request).then(read), timeoutMs)
  } catch (error) {
    if (watchdog.signal.aborted) throw watchdog.signal.reason
    throw isFailure(error) ? error : buildUnreachableError(url, error)
  } finally {
    watchdog.end()
  }
}

export function buildUnreachableError(url: string, cause: unknown): KithConnectionError {
  const code = codeOf(cause)
  const reason = code === undefined ? '' : ` (${code})`
  return new KithConnectionError(`${new URL(url).host} cannot be reached, or the connection broke${reason}.`, { cause })
}

/** The error code of the system, of TLS or of Node's fetch that an error or one of its causes has. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  return typeof code === 'string' ? code : codeOf(cause)
}

/**
 * The payload of a success envelope. Throws a {@link KithError} for an error envelope, and a {@link
 * KithConnectionError} for any other response.
 */
export function payloadOf(response: Response, text: string, nowMs: number): unknown {
  const envelope = parseObject(text)
  if (response.ok && envelope?.status === 'Success') return envelope.data
  if (!response.ok && typeof envelope?.error === 'string') throw buildKithError(response, envelope, nowMs)
  throw new KithConnectionError(
    `The response is not from kith: it has status ${response.status} and not the format of kith. Check the url.`,
    { status: response.status, retryAfterSeconds: secondsUntil(response.headers.get('retry-after'), nowMs) },
  )
}

/** The object of a JSON text; null if the text is no object. */
export function parseObject(text: string): Parsed | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Parsed | null) : null
  } catch {
    return null
  }
}

function buildKithError(response: Response, envelope: Parsed, nowMs: number): KithError {
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

/** The seconds of a `Retry-After` header, which has a number or a date. Null if it is absent or invalid. */
export function secondsUntil(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header)
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - nowMs) / 1_000)
}
