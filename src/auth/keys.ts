import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import type { Database, Transaction } from '../db/db.ts'
import { fail } from '../errors.ts'
import type { Signal } from '../signal.ts'
import { readVerifyingKey, type VerifyingKey } from './jwk.ts'
import {
  deleteDeadKeysSql,
  deleteVerifyingKeySql,
  extendSigningKeySql,
  insertSigningKeySql,
  listSigningKeysSql,
  lockSigningKeysSql,
  readSigningKeySql,
  readVerifyingKeysSql,
  silenceOlderKeysSql,
} from './sql.ts'

/** The service's own live keys: tokens signed by any of them are accepted. */
export type Keys = Readonly<{
  verifying: ReadonlyMap<string, VerifyingKey>
  /** As /.well-known/jwks.json shows them. */
  publicJwks: { keys: JWK[] }
}>

/** What signs. */
export type SigningKey = Readonly<{ kid: string; algorithm: string; key: CryptoKey }>

/** Issuer and audience of the service's own tokens. */
export const ownName = 'kith'

const ownAlgorithm = 'ES256'

/** Every own `kid` is an RFC 7638 thumbprint. */
export const ownKidForm = /^[\w-]{43}$/

type PublicRow = { kid: string; algorithm: string; public_jwk: JWK }

/** The live keys of this database, the first made here unless it is there. Servers that start together share one. */
export async function loadOrCreateKeys(db: Database): Promise<Keys> {
  if ((await db.query(readSigningKeySql, [0])).length === 0) {
    // Made before the transaction: others wait for the lock.
    const made = await makeKey()
    await db.transaction(async tx => {
      await tx.query(lockSigningKeysSql, [])
      if ((await tx.query(readSigningKeySql, [0])).length === 0) await insertKey(tx, made)
    })
  }
  return loadKeys(db)
}

/** The live keys. Those that were `known` stay the same objects, for a remembered token knows its key by that. */
export async function loadKeys(db: Database, known: Keys['verifying'] = new Map()): Promise<Keys> {
  const rows = await db.query<PublicRow>(readVerifyingKeysSql, [])
  const verifying = await Promise.all(
    rows.map(async ({ kid, public_jwk }): Promise<[string, VerifyingKey]> => {
      const key = known.get(kid) ?? (await readVerifyingKey(public_jwk))
      if (!key) throw new Error(`the signing key ${kid} of the database is too weak, or of another kind`)
      return [kid, key]
    }),
  )
  return Object.freeze({
    verifying: new Map(verifying),
    publicJwks: { keys: rows.map(row => ({ ...row.public_jwk, kid: row.kid, alg: row.algorithm, use: 'sig' })) },
  })
}

type SigningRow = { kid: string; algorithm: string; private_jwk: JWK; suffices: boolean }

/** How far beyond a token's end its key is kept: clocks differ. */
const slackSeconds = 3_600
/** Kept for a day more than asked for, the row is written once a day and not for every token. */
const roomSeconds = 86_400

/**
 * The newest key, after it is written down that it verifies until the end of the token that it is taken for
 * (Unix time in seconds): from then on no rotation removes it before.
 */
export async function takeSigningKey(db: Database, expiresAt: number, signal?: Signal): Promise<SigningKey> {
  const neededUntil = expiresAt + slackSeconds
  for (;;) {
    const [row] = await db.query<SigningRow>(readSigningKeySql, [neededUntil], signal)
    if (!row) throw new Error('there is no signing key')
    const { kid, algorithm, private_jwk, suffices } = row
    if (suffices) return { kid, algorithm, key: (await importJWK(private_jwk, algorithm)) as CryptoKey }
    // A rotation may come between: what is read again is the newest, and what it verifies until.
    await db.query(extendSigningKeySql, [kid, neededUntil + roomSeconds], signal)
  }
}

/** A new key signs from now on; the older ones lose their private half, and verify as long as a token of theirs lasts. */
export async function rotateKeys(db: Database): Promise<string> {
  const made = await makeKey()
  await db.transaction(async tx => {
    await tx.query(lockSigningKeysSql, [])
    await insertKey(tx, made)
    await tx.query(silenceOlderKeysSql, [made.kid])
    await tx.query(deleteDeadKeysSql, [])
  })
  return made.kid
}

/** A key as the command shows it; `vouches_until` is null of one without a known end. */
export type ListedKey = {
  kid: string
  algorithm: string
  created_at: string
  signs: boolean
  vouches_until: string | null
}

export const listKeys = (db: Database): Promise<ListedKey[]> => db.query<ListedKey>(listSigningKeysSql, [])

/** Ends a key at once, and every token that it signed. Throws a Fault: `not_found`, and so for the one that signs. */
export async function revokeKey(db: Database, kid: string): Promise<void> {
  const rows = await db.query(deleteVerifyingKeySql, [kid])
  if (rows.length === 0)
    fail(
      'not_found',
      `There is no older key ${JSON.stringify(kid)}. The one that signs is replaced first: keys rotate.`,
    )
}

type MadeKey = { kid: string; public_jwk: JWK; private_jwk: JWK }

async function makeKey(): Promise<MadeKey> {
  const { publicKey, privateKey } = await generateKeyPair(ownAlgorithm, { extractable: true })
  const public_jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(public_jwk)
  // On a command line it would be an option.
  return kid.startsWith('-') ? makeKey() : { kid, public_jwk, private_jwk: await exportJWK(privateKey) }
}

async function insertKey(tx: Transaction, { kid, public_jwk, private_jwk }: MadeKey) {
  await tx.query(insertSigningKeySql, [kid, ownAlgorithm, JSON.stringify(public_jwk), JSON.stringify(private_jwk)])
}
