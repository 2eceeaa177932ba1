import { setTimeout } from 'node:timers/promises'
import type { JWK } from 'jose'
import type { Database } from '../db/db.ts'
import { ageOf } from './age.ts'
import type { KeySource } from './issuers.ts'
import type { VerifyingKey } from './jwk.ts'
import { type Keys, loadKeys, own_kid_form } from './keys.ts'

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
  let begun_at_ms = Number.NEGATIVE_INFINITY
  /** Look-ups begun so far, and the last of them that came to its end: one that began before a key was made misses it. */
  let begun = 0
  let completed = 0
  let waiting = 0
  let running: Promise<void> | undefined

  async function read() {
    // Never none: all who come in one turn share the look-up.
    await setTimeout(Math.max(0, pause_ms - ageOf(begun_at_ms, now_ms())))
    begun_at_ms = now_ms()
    const number = ++begun
    keys = await loadKeys(db, keys.verifying)
    read_at_ms = begun_at_ms
    completed = number
  }

  function run(): Promise<void> {
    running ??= read().finally(() => {
      running = undefined
    })
    return running
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
      const before = begun
      do await run()
      while (!keys.verifying.has(kid) && completed <= before)
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
