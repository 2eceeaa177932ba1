import { type ListedKey, listKeys } from '../auth/keys/keys.ts'
import type { Database } from '../db/db.ts'
import type { SigningKeyShape } from './schema.ts'

/** Lists the public part of the service's signing keys, newest first. They are the same for all organizations. */
export async function listSigningKeys(db: Database): Promise<{ items: SigningKeyShape[] }> {
  const keys = await listKeys(db)
  return { items: keys.map(keyToJson) }
}

function keyToJson({ kid, algorithm, created_at, signs, vouches_until }: ListedKey): SigningKeyShape {
  const hasExpired = Date.parse(vouches_until) <= Date.now()
  const state = signs ? 'signs' : hasExpired ? 'expired' : 'verifies'
  return { kid, algorithm, created_at, state, verifies_until: signs ? null : vouches_until }
}
