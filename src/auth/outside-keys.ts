import { fail } from '../errors.ts'
import { ageOf } from './age-of.ts'
import { parseObject } from './decode-jwt.ts'
import type { KeySource } from './issuers.ts'
import { readVerifyingKey, type VerifyingKey } from './jwk.ts'

/** From this age on keys are fetched again while they still serve, and from that one on before they do. */
const renewMs = 300_000
const staleMs = 600_000
/** While they cannot be fetched the last ones serve on, but no longer than this. */
const trustMs = 3_600_000
/** Between two fetches, whatever is asked for and however the last one went. */
const pauseMs = 30_000

const fetchMs = 5_000
const mostBytes = 262_144
const mostKeys = 100

type Options = {
  jwksUrl: string
  nowMs: () => number
  /** Told in a sentence why a fetch failed. */
  report: (problem: string) => void
}

/**
 * The keys of an outside issuer (RFC 7517). All who wait share one fetch. jose's own remote set would fetch again for
 * every token while the issuer is down, and then refuse what it knew a moment ago.
 */
export function createOutsideKeys({ jwksUrl, nowMs, report }: Options): KeySource {
  let keys: ReadonlyMap<string, VerifyingKey> = new Map()
  let fetchedAtMs = Number.NEGATIVE_INFINITY
  let askedAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined

  async function read() {
    askedAtMs = nowMs()
    try {
      keys = await fetchOutsideKeys(jwksUrl)
      fetchedAtMs = askedAtMs
    } catch (error) {
      report(`the keys of the outside issuer cannot be read: ${reasonOf(error)}`)
    }
  }

  /** One that is under way, a new one, or none where the last was a moment ago. Never rejects. */
  async function run(): Promise<void> {
    if (!running && ageOf(askedAtMs, nowMs()) < pauseMs) return
    running ??= read().finally(() => {
      running = undefined
    })
    await running
  }

  const ageMs = () => ageOf(fetchedAtMs, nowMs())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined || ageMs() >= staleMs) return undefined
    if (ageMs() >= renewMs) void run()
    return keys.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const known = peek(kid)
    if (known || kid === undefined) return known
    await run()
    if (ageMs() >= trustMs) refuseForNow()
    return keys.get(kid)
  }

  return { peek, find }
}

function refuseForNow(): never {
  fail('operation_failed', 'The keys of the token’s issuer cannot be had at the moment.', {
    status: 503,
    headers: { 'Retry-After': String(pauseMs / 1_000) },
  })
}

/** The usable keys at an address, by `kid`. Throws an Error that says why they cannot be had. */
export async function fetchOutsideKeys(jwksUrl: string): Promise<ReadonlyMap<string, VerifyingKey>> {
  return readKeySet(await fetchBounded(jwksUrl))
}

/** The body of a 200, within its time and size. A redirect is no 200: keys come from the address that was configured. */
async function fetchBounded(url: string): Promise<Uint8Array> {
  const response = await fetch(url, {
    redirect: 'manual',
    signal: AbortSignal.timeout(fetchMs),
    // A connection that was kept for minutes is one that the other side has closed.
    headers: { Accept: 'application/jwk-set+json, application/json', Connection: 'close' },
  })
  const parts: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop cancels the rest of the body.
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (response.status !== 200 || bytes > mostBytes) break
    parts.push(part)
  }
  if (response.status !== 200) throw new Error(`it was answered ${response.status}`)
  if (bytes > mostBytes) throw new Error(`they have more than ${mostBytes} bytes`)
  return Buffer.concat(parts)
}

/** The usable keys of a set. Of two with one `kid` neither is: it would not be one key, one algorithm. */
async function readKeySet(body: Uint8Array): Promise<ReadonlyMap<string, VerifyingKey>> {
  const listed = parseObject(body)?.keys
  if (!Array.isArray(listed)) throw new Error('they are no JSON Web Key Set')
  if (listed.length > mostKeys) throw new Error(`there are more than ${mostKeys}`)
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
