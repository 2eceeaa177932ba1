import { createHmac, type KeyObject, sign, webcrypto } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type Authenticator, createAuthenticator } from '../../src/auth/authenticator.ts'
import type { Caller } from '../../src/auth/caller.ts'
import { type Keys, loadOrCreateKeys, type SigningKey, takeSigningKey } from '../../src/auth/keys.ts'
import { loadConfig } from '../../src/config.ts'
import { type Database, openDatabase } from '../../src/db/db.ts'
import { Fault, type Refusal } from '../../src/errors.ts'
import { ensureDefaultOrganization } from '../../src/organizations/organizations.ts'
import { createTestDatabase } from './database.ts'

export const sharedSecret = 'a shared secret of 32 bytes or more'

/** An object, or the very text of it. */
export type Written = Record<string, unknown> | string

/** An authenticator on a database of its own, its clock standing at 2027-01-15, and what it takes to attack it. */
export type Gate = {
  db: Database
  keys: Keys
  signing: SigningKey
  /** The key id of the service's own key. */
  kid: string
  nowMs: number
  /** Queries of the authenticators since the test began. */
  queries: number
  authenticator: Authenticator
  /** Another one with this environment on the same database and clock. */
  open(environment: Record<string, string>): Authenticator
}

export const now = 1_800_000_000

export const goodClaims = {
  iss: 'kith',
  aud: 'kith',
  sub: 'attacker',
  org: 'default',
  scope: 'people:read',
  exp: now + 60,
}

/** Gives the tests of a file one gate; the clock and the count are set back before each. */
export function useGate(): Gate {
  const gate = {} as Gate
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeAll(async () => {
    database = await createTestDatabase()
    gate.db = openDatabase(database.url, { connections: 2, statementTimeoutMs: 10_000 })
    await ensureDefaultOrganization(gate.db)
    gate.keys = await loadOrCreateKeys(gate.db)
    gate.signing = await takeSigningKey(gate.db, now + 3_600)
    gate.kid = gate.signing.kid
    gate.nowMs = now * 1_000 + 500
    const counted: Database = {
      ...gate.db,
      query: (...given) => {
        gate.queries++
        return gate.db.query(...given)
      },
    }
    gate.open = environment =>
      createAuthenticator({ db: counted, keys: gate.keys, config: loadConfig(environment), nowMs: () => gate.nowMs })
    gate.authenticator = gate.open({ AUTH_SECRET: sharedSecret })
  })
  beforeEach(() => {
    gate.nowMs = now * 1_000 + 500
    gate.queries = 0
  })
  afterAll(async () => {
    await gate.db.close()
    await database.drop()
  })
  return gate
}

/** The base64url text of a part of a token. */
export const encode = (part: Written) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')

/** A token of these very bytes, rightly signed by the service's own key. */
export async function signOwn(
  { signing, kid }: Gate,
  payload: Written,
  header: Written = { alg: 'ES256', kid },
): Promise<string> {
  const signed = `${encode(header)}.${encode(payload)}`
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
  const signature = await webcrypto.subtle.sign(algorithm, signing.key as webcrypto.CryptoKey, Buffer.from(signed))
  return `${signed}.${Buffer.from(signature).toString('base64url')}`
}

/** A token of good claims, signed by somebody's EC or Ed25519 key. */
export function signForeign(key: KeyObject, header: Written): string {
  const signed = `${encode(header)}.${encode(goodClaims)}`
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  return `${signed}.${sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** A token authenticated by HMAC-SHA-256. */
export function signShared(payload: Written, header: Written = { alg: 'HS256' }, key = sharedSecret): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

/** What these Authorization headers are answered with: a caller or a refusal. */
export async function present(to: Authenticator, ...authorizations: string[]): Promise<Caller | Refusal> {
  try {
    return await to.authenticate(authorizations)
  } catch (error) {
    if (error instanceof Fault) return error.refusal
    throw error
  }
}

/** The refusal of a wrong token (RFC 6750). */
export const invalidToken = {
  word: 'unauthorized',
  status: 401,
  headers: { 'WWW-Authenticate': 'Bearer realm="kith", error="invalid_token"' },
}

/** Expects 401 `invalid_token` before any database work. */
export async function expectRefused(gate: Gate, token: string, to = gate.authenticator): Promise<void> {
  expect(await present(to, `Bearer ${token}`)).toMatchObject(invalidToken)
  expect(gate.queries).toBe(0)
}
