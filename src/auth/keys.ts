import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import type { Database } from '../db/db.ts'
import { insert_signing_key, lock_signing_keys, read_signing_keys } from './sql.ts'

export type TokenAlgorithm = 'ES256' | 'RS256' | 'EdDSA' | 'HS256'

/** What checks a signature: one key, one algorithm, and the only issuer whose tokens it may vouch for. */
export type VerifyingKey = Readonly<{ algorithm: TokenAlgorithm; key: CryptoKey | Uint8Array; issuer: string }>

/** The service's own keys. Tokens are signed with one; those signed with any of them are accepted. */
export type Keys = Readonly<{
  signing: Readonly<{ kid: string; algorithm: TokenAlgorithm; key: CryptoKey }>
  verifying: ReadonlyMap<string, VerifyingKey>
  /** The public halves, as /.well-known/jwks.json shows them. */
  public_jwks: { keys: JWK[] }
}>

/** Issuer and audience of the service's own tokens. */
export const own_name = 'kith'

const own_algorithm = 'ES256'

type KeyRow = { kid: string; algorithm: TokenAlgorithm; public_jwk: JWK; private_jwk: JWK }

/** The signing keys of this database, the first made here unless it is there. Servers that start together share one. */
export async function loadOrCreateKeys(db: Database): Promise<Keys> {
  const rows = await db.query<KeyRow>(read_signing_keys, [])
  return keysFrom(rows.length > 0 ? rows : await createFirstKey(db))
}

async function createFirstKey(db: Database): Promise<KeyRow[]> {
  // Made before the transaction: others wait for the lock.
  const { kid, algorithm, public_jwk, private_jwk } = await makeKey()
  return db.transaction(async tx => {
    await tx.query(lock_signing_keys, [])
    const rows = await tx.query<KeyRow>(read_signing_keys, [])
    if (rows.length > 0) return rows
    await tx.query(insert_signing_key, [kid, algorithm, JSON.stringify(public_jwk), JSON.stringify(private_jwk)])
    return [{ kid, algorithm, public_jwk, private_jwk }]
  })
}

async function makeKey(): Promise<KeyRow> {
  const { publicKey, privateKey } = await generateKeyPair(own_algorithm, { extractable: true })
  const public_jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(public_jwk)
  return { kid, algorithm: own_algorithm, public_jwk, private_jwk: await exportJWK(privateKey) }
}

async function keysFrom(rows: KeyRow[]): Promise<Keys> {
  const newest = rows[0]!
  const verifying = await Promise.all(
    rows.map(async ({ kid, algorithm, public_jwk }): Promise<[string, VerifyingKey]> => {
      return [kid, { algorithm, key: await importJWK(public_jwk, algorithm), issuer: own_name }]
    }),
  )
  const { kid, algorithm } = newest
  return Object.freeze({
    signing: { kid, algorithm, key: (await importJWK(newest.private_jwk, algorithm)) as CryptoKey },
    verifying: new Map(verifying),
    public_jwks: { keys: rows.map(row => ({ ...row.public_jwk, kid: row.kid, alg: row.algorithm, use: 'sig' })) },
  })
}
