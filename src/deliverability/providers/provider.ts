import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { refuse } from '../../values/errors.ts'
import { formats } from '../../values/formats.ts'
import type { GivenEvent } from '../schema.ts'

/** What the signatures of a source are checked with, as its row has it. */
export type Secrets = { public_key?: string; secret?: string; topic_arn?: string }

/** A request of a provider, with the bytes of its body. */
export type Incoming = {
  headers: IncomingHttpHeaders
  body: Buffer
  secrets: Secrets
  nowMs: number
}

/** What a request with a valid signature tells. */
export type Received = {
  events: GivenEvent[]
  /** The number of events that kith has no use for. */
  ignored: number
  /** What a second request of the same would have again. Undefined if the provider signs nothing. */
  token?: string
  /** Whether the provider's subscription is confirmed by this request. */
  isConfirmed?: boolean
}

/** Checks the signature of a request and reads its events. Throws a Fault of 401 for a request that the provider did not sign. */
export type Receive = (incoming: Incoming) => Received | Promise<Received>

/** Providers repeat a request for up to a day. Their clocks may be ahead a little. */
const maxAgeMs = 86_400_000
const maxAheadMs = 300_000

/** How long tokens are kept: a request is older than that only with an old timestamp. */
export const keptTokensMs = maxAgeMs + maxAheadMs

/** Throws a Fault of 401. The message does not tell what is wrong with the signature. */
export function throwUnsigned(): never {
  return refuse('unauthorized', 'The request has no valid signature of the source.')
}

/** Throws a Fault of 401 for a time that is too long ago, or in the future. */
export function checkAge(timeMs: number, nowMs: number): void {
  if (!(timeMs > nowMs - maxAgeMs && timeMs < nowMs + maxAheadMs)) throwUnsigned()
}

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest())

/** The JSON of a body. Throws a Fault of 400: the signature is that of the provider, so something else is wrong. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return refuse('invalid_json', 'The body is not JSON.')
  }
}

type Fields = Record<string, unknown>

/** A member of what may be an object. */
export const member = (value: unknown, ...names: string[]): unknown =>
  names.reduce<unknown>(
    (found, name) => (typeof found === 'object' && found !== null ? (found as Fields)[name] : undefined),
    value,
  )

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const maxReference = 255

type Told = { provider: string; type: GivenEvent['type']; address: unknown; at: unknown; reference: unknown }

/**
 * An event of an email address. `at` is a time of RFC 3339 or seconds since 1970. Undefined for an event without an address. A time that is none
 * is now.
 */
export function eventOf({ provider, type, address, at, reference }: Told, nowMs: number): GivenEvent | undefined {
  if (typeof address !== 'string' || address.length > 1_000) return undefined
  const bare = /<([^<>]+)>\s*$/.exec(address)?.[1] ?? address.trim()
  if (bare === '' || bare.length > 320) return undefined
  const id = typeof reference === 'number' ? String(reference) : reference
  return {
    channel: 'email',
    address: bare,
    type,
    at: timeOf(at, nowMs),
    provider,
    ...(typeof id === 'string' && id !== '' && { reference: id.slice(0, maxReference) }),
  }
}

function timeOf(at: unknown, nowMs: number): string {
  const text =
    typeof at === 'number' && at > 0 && at < 1e11 ? new Date(Math.round(at * 1_000)).toISOString() : String(at)
  return formats['collection-time']!.holds(text) ? text : new Date(nowMs).toISOString()
}

/** Collects events, and counts what is none. */
export function collect(events: readonly (GivenEvent | undefined)[]): Pick<Received, 'events' | 'ignored'> {
  const known = events.filter(event => event !== undefined)
  return { events: known, ignored: events.length - known.length }
}
