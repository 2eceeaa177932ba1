import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'
import { type Database, masterKeysOf, type Transaction } from '../db/db.ts'
import { type MasterKeys, rowOf, unwrapJson, wrapJson } from '../db/master-keys.ts'
import type { Signal } from '../process/signal.ts'
import {
  insertLedgerKeySql,
  listLedgerKeysSql,
  lockLedgerKeysSql,
  readLedgerSignerSql,
  retireLedgerKeySql,
} from './sql.ts'

/** The key that signs checkpoints and receipts, Ed25519. `kid` is its RFC 7638 thumbprint. */
export type LedgerSigner = { kid: string; privateKey: KeyObject }

/** A key that signs, or has signed. */
export type LedgerKey = { kid: string; publicKey: KeyObject; created_at: string; retired_at: string | null }

/** Creates the key of the ledgers if the database has none. Servers that start together create only one. */
export async function ensureLedgerKey(db: Database): Promise<void> {
  if ((await db.query(readLedgerSignerSql, [])).length > 0) return
  await db.transaction(async tx => {
    await tx.query(lockLedgerKeysSql, [])
    if ((await tx.query(readLedgerSignerSql, [])).length === 0) await createKey(tx, masterKeysOf(db))
  })
}

/** Reads the key that signs. */
export async function readLedgerSigner(db: Database, signal?: Signal): Promise<LedgerSigner> {
  const [row] = await db.query<StoredLedgerKey>(readLedgerSignerSql, [], signal)
  if (!row) throw new Error('there is no key that signs the ledgers')
  return openLedgerKey(row, masterKeysOf(db))
}

/** The stored signing key, whose private half is wrapped, see {@link ledgerKeyRow}. */
export type StoredLedgerKey = { kid: string; private_jwk: unknown }

/** The row that the private half of a key is wrapped for. */
export const ledgerKeyRow = (kid: string): string => rowOf('ledger_keys', kid)

/** Unwraps the key that signs. Throws an Error if the master keys do not open it. */
export function openLedgerKey({ kid, private_jwk }: StoredLedgerKey, keys: MasterKeys): LedgerSigner {
  const key = unwrapJson(keys, private_jwk, ledgerKeyRow(kid))
  return { kid, privateKey: createPrivateKey({ format: 'jwk', key: key as never }) }
}

/** All keys of the ledgers, newest first: the signing key and the retired ones. */
export async function listLedgerKeys(db: Pick<Database, 'query'>, signal?: Signal): Promise<LedgerKey[]> {
  const rows = await db.query<Omit<LedgerKey, 'publicKey'> & { public_jwk: JWK }>(listLedgerKeysSql, [], signal)
  return rows.map(({ public_jwk, ...row }) => ({
    ...row,
    publicKey: createPublicKey({ format: 'jwk', key: public_jwk as never }),
  }))
}

/**
 * Creates a new signing key and returns its `kid`. The previous key loses its private half. Its public half stays, so
 * that its signatures remain verifiable.
 */
export function rotateLedgerKey(db: Database): Promise<string> {
  return db.transaction(async tx => {
    await tx.query(lockLedgerKeysSql, [])
    await tx.query(retireLedgerKeySql, [])
    return createKey(tx, masterKeysOf(db))
  })
}

async function createKey(tx: Transaction, keys: MasterKeys): Promise<string> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const public_jwk = publicKey.export({ format: 'jwk' }) as JWK
  const kid = await calculateJwkThumbprint(public_jwk)
  const wrapped = wrapJson(keys, privateKey.export({ format: 'jwk' }), ledgerKeyRow(kid))
  await tx.query(insertLedgerKeySql, [kid, JSON.stringify(public_jwk), wrapped])
  return kid
}
