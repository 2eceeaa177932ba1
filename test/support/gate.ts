import { createHmac, type KeyObject, sign, webcrypto } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { type Authenticator, createAuthenticator } from '../../src/auth/authenticator.ts'
import { type Keys, loadOrCreateKeys, type SigningKey, takeSigningKey } from '../../src/auth/keys/keys.ts'
import { type Database, openDatabase } from '../../src/db/db.ts'
import { ensureDefaultOrganization } from '../../src/organizations/organizations.ts'
import { loadConfig } from '../../src/process/config.ts'
import type { Caller } from '../../src/route/caller.ts'
import { Fault, type Refusal } from '../../src/values/errors.ts'
import { createTestDatabase } from './database.ts'

export const sharedSecret = 'a shared secret of 32 bytes or more'

/** A part of a token: an object, or its exact text. */
export type TokenPart = Record<string, unknown> | string

/** An authenticator with its own database and a clock fixed at 2027-01-15, and the keys to forge tokens for it. */
export type Gate = {
  db: Database
  keys: Keys
  signing: SigningKey
  /** The key id of the service's own key. */
  kid: string
  nowMs: number
  /** The names of the statements of all authenticators since the start of the test. */
  queries: string[]
  /** The names of those that were answered. */
  answered: string[]
  authenticator: Authenticator
  /** Creates another authenticator with this environment, on the same database and clock. */
  open(environment: Record<string, string>): Authenticator
}

export const now = 1_800_000_000

export const validClaims = {
  iss: 'kith',
  aud: 'kith',
  sub: 'attacker',
  org: 'default',
  scope: 'people:read',
  exp: now + 60,
}

/** Gives the tests of a file one gate. Its clock and query count are reset before each test. */
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
      query: (...queryArguments) => {
        const { name } = queryArguments[0]
        gate.queries.push(name)
        return gate.db.query(...queryArguments).then(rows => {
          gate.answered.push(name)
          return rows
        }) as never
      },
    }
    gate.open = environment =>
      createAuthenticator({ db: counted, keys: gate.keys, config: loadConfig(environment), nowMs: () => gate.nowMs })
    gate.authenticator = gate.open({ AUTH_SECRET: sharedSecret })
  })
  beforeEach(() => {
    gate.nowMs = now * 1_000 + 500
    gate.queries = []
    gate.answered = []
  })
  afterAll(async () => {
    await gate.db.close()
    await database.drop()
  })
  return gate
}

/** Encodes a part of a token as base64url. */
export const encode = (part: TokenPart) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')

/** Creates a token of exactly these bytes with a valid signature of the service's own key. */
export async function signOwn(
  { signing, kid }: Gate,
  payload: TokenPart,
  header: TokenPart = { alg: 'ES256', kid },
): Promise<string> {
  const signed = `${encode(header)}.${encode(payload)}`
  const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
  const signature = await webcrypto.subtle.sign(algorithm, signing.key as webcrypto.CryptoKey, Buffer.from(signed))
  return `${signed}.${Buffer.from(signature).toString('base64url')}`
}

/** Creates a token of valid claims, signed with another EC or Ed25519 key. */
export function signForeign(key: KeyObject, header: TokenPart): string {
  const signed = `${encode(header)}.${encode(validClaims)}`
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  return `${signed}.${sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Creates a token with an HMAC-SHA-256 signature. */
export function signShared(payload: TokenPart, header: TokenPart = { alg: 'HS256' }, key = sharedSecret): string {
  const signed = `${encode(header)}.${encode(payload)}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

/** Authenticates Authorization headers. Returns the caller or the refusal. */
export async function authenticate(to: Authenticator, ...authorizations: string[]): Promise<Caller | Refusal> {
  try {
    return await to.authenticate(authorizations)
  } catch (error) {
    if (error instanceof Fault) return error.refusal
    throw error
  }
}

/** The refusal of an invalid token (RFC 6750). */
export const invalidToken = {
  code: 'unauthorized',
  status: 401,
  headers: { 'WWW-Authenticate': 'Bearer realm="kith", error="invalid_token"' },
}

/** Asserts that a token gets 401 `invalid_token` without any query. */
export async function expectRefused(gate: Gate, token: string, to = gate.authenticator): Promise<void> {
  expect(await authenticate(to, `Bearer ${token}`)).toMatchObject(invalidToken)
  expect(gate.queries).toEqual([])
}
