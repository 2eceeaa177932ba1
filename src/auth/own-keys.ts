import type { JWK } from 'jose'
import type { Database } from '../db/db.ts'
import { ageOf } from './age-of.ts'
import type { KeySource } from './issuers.ts'
import type { VerifyingKey } from './jwk.ts'
import { type Keys, loadKeys, ownKidForm } from './keys.ts'
import { createTurns } from './throttle.ts'

/** From this age on keys are read again while they still serve, and from that one on before they do. */
const renewMs = 5_000
const staleMs = 10_000
/** Between two look-ups, whoever asks. */
const pauseMs = 1_000
const mostWaiting = 1_000

export type OwnKeys = KeySource & {
  /** The public halves of all live keys, of a second ago at most while the database answers. */
  jwks(): Promise<{ keys: JWK[] }>
}

/**
 * The service's own keys, which another process may rotate: an unknown `kid` of their form is looked up in the
 * database. There is one look-up a second: who comes in between waits for the next, for a key that is a moment old
 * must not be refused.
 */
export function createOwnKeys(
  { db, keys: first, sharedSecret }: { db: Database; keys: Keys; sharedSecret: VerifyingKey | undefined },
  nowMs: () => number,
): OwnKeys {
  let keys = first
  let readAtMs = nowMs()
  let waiting = 0
  const { run, runUntil } = createTurns(read, pauseMs, nowMs)

  async function read() {
    const sinceMs = nowMs()
    keys = await loadKeys(db, keys.verifying)
    readAtMs = sinceMs
  }

  const ageMs = () => ageOf(readAtMs, nowMs())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined) return sharedSecret
    if (ageMs() >= staleMs) return undefined
    if (ageMs() >= renewMs) run().catch(() => {})
    return keys.verifying.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const known = peek(kid)
    if (known || kid === undefined || !ownKidForm.test(kid)) return known
    if (waiting >= mostWaiting && ageMs() < staleMs) return undefined
    waiting++
    try {
      await runUntil(() => keys.verifying.has(kid))
      return keys.verifying.get(kid)
    } finally {
      waiting--
    }
  }

  async function jwks() {
    // The last that is known is better than nothing: its readers keep what they get for much longer.
    if (ageMs() >= pauseMs) await run().catch(() => {})
    return keys.publicJwks
  }

  return { peek, find, jwks }
}
