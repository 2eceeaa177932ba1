import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { refuse } from '../../values/errors.ts'
import { formats } from '../../values/formats.ts'
import { parseJson } from '../../values/parse-json.ts'
import type { GivenEvent, Provider, SecretName } from '../schema.ts'

/** A request of a provider, with the bytes of its body, and the secret of its source. */
export type Incoming = { headers: IncomingHttpHeaders; body: Buffer; secret: string | null; nowMs: number }

/** A request with a valid signature. */
export type Signed = {
  /** Identifies the request, so that kith refuses a repetition. Undefined if the provider signs nothing. */
  token?: string
  /** The time of the signature. */
  atMs?: number
  /** Confirms the subscription that the request asks for. */
  confirm?: () => Promise<unknown>
}

/** The content of an event. kith ignores an event without a type. `at` is a time of RFC 3339 or seconds since 1970. */
export type Told = { type: GivenEvent['type'] | undefined; address: unknown; at: unknown; reference: unknown }

/** Verifies and reads the requests of a provider. */
export type Adapter = {
  secretName: SecretName
  isOptional?: true
  /** Returns the rule that a secret breaks. Undefined if it breaks none. */
  faultOf?(secret: string): string | undefined
  /**
   * Checks the signature. `content` is undefined if the body is not JSON. Throws a Fault of 401 unless the provider
   * signed the request.
   */
  verify(incoming: Incoming, content: unknown): Signed | Promise<Signed>
  read(content: unknown): Told[]
}

/** Providers repeat a request for up to a day. Their clocks may be slightly ahead. */
const maxAgeMs = 86_400_000
const maxAheadMs = 300_000

/** How long tokens are kept. An older request also has a timestamp that is too old. */
export const keptTokensMs = maxAgeMs + maxAheadMs

/**
 * Checks the signature and the age of a request, and reads its events. `ignored` is the number of events that kith does
 * not use. Throws a Fault of 401 for a request that the provider did not sign, and of 400 for a signed one that is not
 * JSON.
 */
export async function receive(provider: Provider, adapter: Adapter, incoming: Incoming) {
  const { body, nowMs } = incoming
  const content = parseJson(body.toString())
  const { token, atMs = nowMs, confirm } = await adapter.verify(incoming, content)
  if (!(atMs > nowMs - maxAgeMs && atMs < nowMs + maxAheadMs)) throwUnsigned()
  if (content === undefined) refuse('invalid_json', 'The body is not JSON.')
  await confirm?.()
  const told = confirm ? [] : adapter.read(content)
  const events = told.flatMap(each => eventOf(provider, each, nowMs) ?? [])
  return { events, ignored: told.length - events.length, token, isConfirmed: confirm !== undefined }
}

/** Throws a Fault of 401. The message does not say what is wrong with the signature. */
export function throwUnsigned(): never {
  return refuse('unauthorized', 'The request has no valid signature of the source.')
}

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(createHash('sha256').update(one).digest(), createHash('sha256').update(other).digest())

/** Converts seconds since 1970 to milliseconds. Throws a Fault of 401 for a text that is no number. */
export const secondsToMs = (text: string): number => (/^\d{1,12}$/.test(text) ? Number(text) * 1_000 : throwUnsigned())

/** A member of a value that may be an object. Undefined if it has none. */
export const member = (value: unknown, ...names: string[]): unknown =>
  names.reduce<unknown>(
    (found, name) =>
      typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[name] : undefined,
    value,
  )

/** The type of an event by the provider's name for it. Undefined for an event that kith does not use. */
export const typeIn = (types: Record<string, GivenEvent['type']>, name: unknown): GivenEvent['type'] | undefined =>
  Object.hasOwn(types, String(name)) ? types[String(name)] : undefined

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const maxReference = 255

/** An event of an email address. An invalid time becomes the current one. Undefined without a type or an address. */
function eventOf(provider: Provider, { type, address, at, reference }: Told, nowMs: number): GivenEvent | undefined {
  if (type === undefined || typeof address !== 'string' || address.length > 1_000) return undefined
  const bare = /<([^<>]+)>\s*$/.exec(address)?.[1] ?? address.trim()
  if (bare === '' || bare.length > 320) return undefined
  const id = typeof reference === 'number' ? String(reference) : reference
  const given = { channel: 'email', address: bare, type, at: timeOf(at, nowMs), provider } as const
  return typeof id === 'string' && id !== '' ? { ...given, reference: storable(id.slice(0, maxReference)) } : given
}

/** The text without NUL and unpaired surrogates, which PostgreSQL does not store in JSON. */
const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\u{fffd}')

function timeOf(at: unknown, nowMs: number): string {
  const text =
    typeof at === 'number' && at > 0 && at < 1e11 ? new Date(Math.round(at * 1_000)).toISOString() : String(at)
  return formats['collection-time']!.holds(text) ? text : new Date(nowMs).toISOString()
}
