import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import { type Database, masterKeysOf, type Transaction } from '../../db/db.ts'
import { type MasterKeys, rowOf, unwrapJson, wrapJson } from '../../db/master-keys.ts'
import type { Signal } from '../../process/signal.ts'
import { refuse } from '../../values/errors.ts'
import type { ListedKey } from '../schema.ts'
import {
  deleteExpiredKeysSql,
  deleteOlderPrivateKeysSql,
  deleteVerifyingKeySql,
  extendSigningKeySql,
  insertSigningKeySql,
  listSigningKeysSql,
  lockSigningKeysSql,
  readSigningKeySql,
  readVerifyingKeysSql,
} from '../sql.ts'
import { readVerifyingKey, type VerifyingKey } from './jwk.ts'

/** The service's own valid keys. A token signed with any of them is accepted. */
export type Keys = Readonly<{
  verifying: ReadonlyMap<string, VerifyingKey>
  /** The response of /.well-known/jwks.json. */
  publicJwks: { keys: JWK[] }
}>

/** The key that signs new tokens. */
export type SigningKey = Readonly<{ kid: string; algorithm: string; key: CryptoKey }>

/** Issuer and audience of the service's own tokens. */
export const ownName = 'kith'

const ownAlgorithm = 'ES256'

/** Every own `kid` is an RFC 7638 thumbprint. */
export const ownKidPattern = /^[\w-]{43}$/

type PublicRow = { kid: string; algorithm: string; public_jwk: JWK }

/**
 * Loads the valid keys. Creates the first key if the database has none; servers that start together create only one.
 */
export async function loadOrCreateKeys(db: Database): Promise<Keys> {
  if ((await db.query(readSigningKeySql, [0])).length === 0) {
    // The key is generated before the transaction, because other servers wait for the lock.
    const created = await generateKey()
    await db.transaction(async tx => {
      await tx.query(lockSigningKeysSql, [])
      if ((await tx.query(readSigningKeySql, [0])).length === 0) await insertKey(tx, created, masterKeysOf(db))
    })
  }
  return loadKeys(db)
}

/**
 * Loads the valid keys. Keys in `known` keep their object, because a cached token compares its key by identity. Throws
 * an Error if a stored key is unusable.
 */
export async function loadKeys(db: Database, known: Keys['verifying'] = new Map()): Promise<Keys> {
  const rows = await db.query<PublicRow>(readVerifyingKeysSql, [])
  const verifying = await Promise.all(
    rows.map(async ({ kid, public_jwk }): Promise<[string, VerifyingKey]> => {
      const key = known.get(kid) ?? (await readVerifyingKey(public_jwk))
      if (!key) throw new Error(`the signing key ${kid} in the database is too weak or of an unsupported type`)
      return [kid, key]
    }),
  )
  return Object.freeze({
    verifying: new Map(verifying),
    publicJwks: { keys: rows.map(row => ({ ...row.public_jwk, kid: row.kid, alg: row.algorithm, use: 'sig' })) },
  })
}

/** `private_jwk` is wrapped, see {@link signingKeyRow}. */
type SigningRow = { kid: string; algorithm: string; private_jwk: unknown; suffices: boolean }

/** The time for which a key is kept after its last token expires, because clocks differ. */
const clockSlackSeconds = 3_600
/** A key is kept a day longer than necessary, so that its row is updated once a day and not for every token. */
const extensionSeconds = 86_400

/**
 * Reads the signing key and records that it must verify tokens until `expiresAt` (Unix time in seconds). No rotation
 * removes it before that time.
 */
export async function takeSigningKey(db: Database, expiresAt: number, signal?: Signal): Promise<SigningKey> {
  const neededUntil = expiresAt + clockSlackSeconds
  for (;;) {
    const [row] = await db.query<SigningRow>(readSigningKeySql, [neededUntil], signal)
    if (!row) throw new Error('there is no signing key')
    const { kid, algorithm, private_jwk, suffices } = row
    if (suffices) {
      const jwk = unwrapJson(masterKeysOf(db), private_jwk, signingKeyRow(kid)) as JWK
      return { kid, algorithm, key: (await importJWK(jwk, algorithm)) as CryptoKey }
    }
    // A rotation may happen between the two statements. The loop therefore reads the signing key again.
    await db.query(extendSigningKeySql, [kid, neededUntil + extensionSeconds], signal)
  }
}

/**
 * Creates a new signing key and returns its `kid`. Older keys lose their private half and verify until their last token
 * expires.
 */
export async function rotateKeys(db: Database): Promise<string> {
  const created = await generateKey()
  await db.transaction(async tx => {
    await tx.query(lockSigningKeysSql, [])
    await insertKey(tx, created, masterKeysOf(db))
    await tx.query(deleteOlderPrivateKeysSql, [created.kid])
    await tx.query(deleteExpiredKeysSql, [])
  })
  return created.kid
}

/** The public part of the service's signing keys, newest first. They are the same for all organizations. */
export const listKeys = (db: Database): Promise<ListedKey[]> => db.query<ListedKey>(listSigningKeysSql, [])

/**
 * Deletes a key, so that every token that it signed becomes invalid. Throws a Fault `not_found` for an unknown key and
 * for the signing key.
 */
export async function revokeKey(db: Database, kid: string): Promise<void> {
  const rows = await db.query(deleteVerifyingKeySql, [kid])
  if (rows.length === 0)
    refuse(
      'not_found',
      `There is no older key ${JSON.stringify(kid)}. To revoke the signing key, run kith keys rotate first.`,
    )
}

type CreatedKey = { kid: string; public_jwk: JWK; private_jwk: JWK }

async function generateKey(): Promise<CreatedKey> {
  const { publicKey, privateKey } = await generateKeyPair(ownAlgorithm, { extractable: true })
  const public_jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(public_jwk)
  // A kid that begins with a hyphen would be parsed as an option on a command line.
  return kid.startsWith('-') ? generateKey() : { kid, public_jwk, private_jwk: await exportJWK(privateKey) }
}

/** The row that the private half of a key is wrapped for. */
export const signingKeyRow = (kid: string): string => rowOf('signing_keys', kid)

async function insertKey(tx: Transaction, { kid, public_jwk, private_jwk }: CreatedKey, keys: MasterKeys) {
  const wrapped = wrapJson(keys, private_jwk, signingKeyRow(kid))
  await tx.query(insertSigningKeySql, [kid, ownAlgorithm, JSON.stringify(public_jwk), wrapped])
}
