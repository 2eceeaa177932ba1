import type { JWK } from 'jose'
import type { Database } from '../db/db.ts'
import { ageOf } from './age.ts'
import type { KeySource } from './issuers.ts'
import type { VerifyingKey } from './jwk.ts'
import { type Keys, loadKeys, own_kid_form } from './keys.ts'
import { createTurns } from './turns.ts'

/** From this age on keys are read again while they still serve, and from that one on before they do. */
const renew_ms = 5_000
const stale_ms = 10_000
/** Between two look-ups, whoever asks. */
const pause_ms = 1_000
const most_waiting = 1_000

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
  { db, keys: first, shared_secret }: { db: Database; keys: Keys; shared_secret: VerifyingKey | undefined },
  now_ms: () => number,
): OwnKeys {
  let keys = first
  let read_at_ms = now_ms()
  let waiting = 0
  const { run, runUntil } = createTurns(read, pause_ms, now_ms)

  async function read() {
    const since_ms = now_ms()
    keys = await loadKeys(db, keys.verifying)
    read_at_ms = since_ms
  }

  const age_ms = () => ageOf(read_at_ms, now_ms())

  function peek(kid: string | undefined): VerifyingKey | undefined {
    if (kid === undefined) return shared_secret
    if (age_ms() >= stale_ms) return undefined
    if (age_ms() >= renew_ms) run().catch(() => {})
    return keys.verifying.get(kid)
  }

  async function find(kid: string | undefined): Promise<VerifyingKey | undefined> {
    const known = peek(kid)
    if (known || kid === undefined || !own_kid_form.test(kid)) return known
    if (waiting >= most_waiting && age_ms() < stale_ms) return undefined
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
    if (age_ms() >= pause_ms) await run().catch(() => {})
    return keys.public_jwks
  }

  return { peek, find, jwks }
}
