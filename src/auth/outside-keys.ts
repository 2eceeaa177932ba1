import { fail } from '../errors.ts'
import { ageOf } from './age.ts'
import type { KeySource } from './issuers.ts'
import { readVerifyingKey, type VerifyingKey } from './jwk.ts'
import { parseObject } from './shape.ts'

/** From this age on keys are fetched again while they still serve, and from that one on before they do. */
const renew_ms = 300_000
const stale_ms = 600_000
/** While they cannot be fetched the last ones serve on, but no longer than this. */
const trust_ms = 3_600_000
/** Between two fetches, whatever is asked for and however the last one went. */
const pause_ms = 30_000

const fetch_ms = 5_000
const most_bytes = 262_144
const most_keys = 100

type Options = {
  jwks_url: string
  now_ms: () => number
  /** Told in a sentence why a fetch failed. */
  report: (problem: string) => void
}

/**
 * The keys of an outside issuer (RFC 7517). All who wait share one fetch. jose's own remote set would fetch again for
 * every token while the issuer is down, and then refuse what it knew a moment ago.
 */
export function createOutsideKeys({ jwks_url, now_ms, report }: Options): KeySource {
  let keys: ReadonlyMap<string, VerifyingKey> = new Map()
  let fetched_at_ms = Number.NEGATIVE_INFINITY
  let asked_at_ms = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined

  async function read() {
    asked_at_ms = now_ms()
    try {
      keys = await fetchOutsideKeys(jwks_url)
      fetched_at_ms = asked_at_ms
    } catch (error) {
      report(`the keys of the outside issuer cannot be read: ${reasonOf(error)}`)
    }
  }

  /** One that is under way, a new one, or none where the last was a moment ago. Never rejects. */
  async function run(): Promise<void> {
    if (!running && ageOf(asked_at_ms, now_ms()) < pause_ms) return
    running ??= read().finally(() => {
      running = undefined
    })
    await running
  }

  const age_ms = () => ageOf(fetched_at_ms, now_ms())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined || age_ms() >= stale_ms) return undefined
    if (age_ms() >= renew_ms) void run()
    return keys.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const known = peek(kid)
    if (known || kid === undefined) return known
    await run()
    if (age_ms() >= trust_ms) refuseForNow()
    return keys.get(kid)
  }

  return { peek, find }
}

function refuseForNow(): never {
  fail('operation_failed', 'The keys of the token’s issuer cannot be had at the moment.', {
    status: 503,
    headers: { 'Retry-After': String(pause_ms / 1_000) },
  })
}

/** The usable keys at an address, by `kid`. Throws an Error that says why they cannot be had. */
export async function fetchOutsideKeys(jwks_url: string): Promise<ReadonlyMap<string, VerifyingKey>> {
  return readKeySet(await fetchBounded(jwks_url))
}

/** The body of a 200, within its time and size. A redirect is no 200: keys come from the address that was configured. */
async function fetchBounded(url: string): Promise<Uint8Array> {
  const response = await fetch(url, {
    redirect: 'manual',
    signal: AbortSignal.timeout(fetch_ms),
    // A connection that was kept for minutes is one that the other side has closed.
    headers: { Accept: 'application/jwk-set+json, application/json', Connection: 'close' },
  })
  const parts: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop cancels the rest of the body.
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (response.status !== 200 || bytes > most_bytes) break
    parts.push(part)
  }
  if (response.status !== 200) throw new Error(`it was answered ${response.status}`)
  if (bytes > most_bytes) throw new Error(`they have more than ${most_bytes} bytes`)
  return Buffer.concat(parts)
}

/** The usable keys of a set. Of two with one `kid` neither is: it would not be one key, one algorithm. */
async function readKeySet(body: Uint8Array): Promise<ReadonlyMap<string, VerifyingKey>> {
  const listed = parseObject(body)?.keys
  if (!Array.isArray(listed)) throw new Error('they are no JSON Web Key Set')
  if (listed.length > most_keys) throw new Error(`there are more than ${most_keys}`)
  const named = listed.filter(jwk => typeof jwk?.kid === 'string')
  const unique = named.filter(jwk => named.every(other => other === jwk || other.kid !== jwk.kid))
  const read = await Promise.all(unique.map(async jwk => [jwk.kid as string, await readVerifyingKey(jwk)] as const))
  return new Map(read.flatMap(([kid, key]) => (key ? [[kid, key]] : [])))
}

/** `fetch` says only that it failed; the reason lies beneath. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
