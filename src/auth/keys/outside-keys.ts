import { setTimeout } from 'node:timers/promises'
import { refuse } from '../../values/errors.ts'
import { parseObject } from '../decode-jwt.ts'
import type { KeySource } from '../issuers.ts'
import { ageOf } from '../ttl-cache.ts'
import { readVerifyingKey, type VerifyingKey } from './jwk.ts'

/** Keys of this age are fetched again in the background and still used. */
const refreshMs = 300_000
/** Keys of this age are fetched again before they are used. */
const maxAgeMs = 600_000
/** While fetches fail, the last keys are used up to this age. */
const maxAgeOnFailureMs = 3_600_000
/** The pause between two fetches, whether the last one succeeded or failed. */
const pauseMs = 30_000

const fetchTimeoutMs = 5_000
/** A token with a known key waits this long for a hanging fetch. Then the known key is used. */
const knownKeyPatienceMs = 1_000
const maxBytes = 262_144
const maxKeys = 100

type Options = {
  jwksUrl: string
  nowMs: () => number
  /** Called with a sentence that explains why a fetch failed. */
  report: (problem: string) => void
}

/**
 * Caches the keys of an outside issuer (RFC 7517). Concurrent requests share one fetch. While the issuer is down,
 * jose's own remote key set would fetch for every token, and would refuse tokens with previously fetched keys.
 */
export function createOutsideKeys({ jwksUrl, nowMs, report }: Options): KeySource {
  let keys: ReadonlyMap<string, VerifyingKey> = new Map()
  let fetchedAtMs = Number.NEGATIVE_INFINITY
  let startedAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined

  async function refresh() {
    startedAtMs = nowMs()
    try {
      keys = await fetchOutsideKeys(jwksUrl)
      fetchedAtMs = startedAtMs
    } catch (error) {
      report(`the keys of the outside issuer cannot be read: ${reasonOf(error)}`)
    }
  }

  /** Waits for the running fetch or starts one. Does nothing if the last fetch is too recent. Never rejects. */
  async function run(): Promise<void> {
    if (!running && ageOf(startedAtMs, nowMs()) < pauseMs) return
    running ??= refresh().finally(() => {
      running = undefined
    })
    await running
  }

  /** All requests that wait for one fetch give up at the same time. */
  const patienceLeftMs = () => Math.max(0, knownKeyPatienceMs - (running ? ageOf(startedAtMs, nowMs()) : 0))

  const ageMs = () => ageOf(fetchedAtMs, nowMs())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined || ageMs() >= maxAgeMs) return undefined
    if (ageMs() >= refreshMs) void run()
    return keys.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const cached = peek(kid)
    if (cached || kid === undefined) return cached
    const isUsable = keys.has(kid) && ageMs() < maxAgeOnFailureMs
    await (isUsable ? Promise.race([run(), setTimeout(patienceLeftMs(), undefined, { ref: false })]) : run())
    if (ageMs() >= maxAgeOnFailureMs) throwKeysUnavailable()
    return keys.get(kid)
  }

  return { peek, find }
}

function throwKeysUnavailable(): never {
  refuse(
    'operation_failed',
    `The keys of the token’s issuer are unavailable. Retry after ${pauseMs / 1_000} seconds.`,
    {
      status: 503,
      headers: { 'Retry-After': String(pauseMs / 1_000) },
    },
  )
}

/** Fetches the key set at a URL and returns its usable keys by `kid`. Throws an Error with the reason if that fails. */
export async function fetchOutsideKeys(jwksUrl: string): Promise<ReadonlyMap<string, VerifyingKey>> {
  return readKeySet(await fetchBounded(jwksUrl))
}

/** Reads a body of at most 256 KiB. `throw` cancels the rest of it. */
export async function readBounded(response: Response): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > maxBytes) throw new TypeError(`the response has more than ${maxBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/**
 * Fetches the body of a 200, within limits of time and size. A redirect is refused, because keys may come only from the
 * configured URL.
 */
async function fetchBounded(url: string): Promise<Uint8Array> {
  const response = await fetch(url, {
    redirect: 'manual',
    signal: AbortSignal.timeout(fetchTimeoutMs),
    // The next fetch is minutes away. By then, the server would have closed an idle connection.
    headers: { Accept: 'application/jwk-set+json, application/json', Connection: 'close' },
  })
  if (response.status === 200) return readBounded(response)
  await response.body?.cancel()
  throw new Error(`the response has status ${response.status}`)
}

/**
 * Reads the usable keys of a set. Keys that share a `kid` are ignored, because a `kid` must mean one key and one
 * algorithm.
 */
async function readKeySet(body: Uint8Array): Promise<ReadonlyMap<string, VerifyingKey>> {
  const listed = parseObject(body)?.keys
  if (!Array.isArray(listed)) throw new Error('the response is not a JSON Web Key Set')
  if (listed.length > maxKeys) throw new Error(`the set has more than ${maxKeys} keys`)
  const named = listed.filter(jwk => typeof jwk?.kid === 'string')
  const unique = named.filter(jwk => named.every(other => other === jwk || other.kid !== jwk.kid))
  const read = await Promise.all(unique.map(async jwk => [jwk.kid as string, await readVerifyingKey(jwk)] as const))
  return new Map(read.flatMap(([kid, key]) => (key ? [[kid, key]] : [])))
}

/** The message of `fetch` says only that it failed. The reason is in its cause. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
