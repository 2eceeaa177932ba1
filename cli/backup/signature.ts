import { type KeyObject, sign } from 'node:crypto'
import type pg from 'pg'
import { parseVerifierKey, type VerifierKey } from '../../client/src/ledger-proof.ts'
import { verifyEd25519 } from '../../client/src/ledger-text.ts'
import type { MasterKeys } from '../../src/db/master-keys.ts'
import { openLedgerKey, type StoredLedgerKey } from '../../src/ledger/keys.ts'
import { formatVerifierKey } from '../../src/ledger/note.ts'
import { readLedgerSignerSql } from '../../src/ledger/sql.ts'
import { UsageError } from '../command.ts'

/** The key that signs backups and ledgers. `verifierKey` has the form name+hash+base64. */
export type Signer = { verifierKey: string; privateKey: KeyObject }

export const signatureBytes = 64

/**
 * Reads the key of the ledgers. A database has none if it was migrated but no service has started on it. If the master
 * keys do not open the key, the backup is not signed: a backup must be possible after the loss of the master keys.
 * `name` is the first part of the origin of the ledgers.
 */
export async function readSigner(client: pg.Client, name: string, masterKeys: MasterKeys): Promise<Signer | undefined> {
  const [key] = (await client.query<StoredLedgerKey>(readLedgerSignerSql.text)).rows
  if (!key || (typeof key.private_jwk === 'string' && !masterKeys.hasKeyOf(key.private_jwk))) return undefined
  const { privateKey } = openLedgerKey(key, masterKeys)
  return { verifierKey: formatVerifierKey(name, privateKey), privateKey }
}

// The key also signs checkpoints, which begin with the origin of a ledger. No origin has a space, so no checkpoint begins like this text.
const signedText = (sha256: string) => Buffer.from(`kith backup\n${sha256}\n`)

/** Signs the SHA-256 of a backup, in hexadecimal. Returns the signature in hexadecimal. */
export const signDigest = ({ privateKey }: Signer, sha256: string): string =>
  sign(null, signedText(sha256), privateKey).toString('hex')

/** Whether the key signed this SHA-256. False for a text that is no verifier key. */
export async function isSignedBy(verifierKey: string, sha256: string, signature: string): Promise<boolean> {
  try {
    const { publicKey } = await parseVerifierKey(verifierKey)
    return await verifyEd25519(publicKey, Buffer.from(signature, 'hex'), signedText(sha256))
  } catch {
    return false
  }
}

/**
 * Compares the key that signed a backup with the expected key. The names of the keys may differ, because each
 * organization names the key differently. Throws an Error if the keys differ or the backup is not signed, and a
 * UsageError for a malformed key.
 */
export async function requireKey(signedBy: string | undefined, key: string): Promise<void> {
  const expected = await parseKey(key)
  if (signedBy === undefined)
    throw new Error('The backup is not signed, so the key that you gave did not sign it. Leave out --key to accept it.')
  if (Buffer.compare((await parseVerifierKey(signedBy)).publicKey, expected.publicKey) !== 0)
    throw new Error(`The backup is signed by the key ${signedBy}, not by the key that you gave.`)
}

async function parseKey(key: string): Promise<VerifierKey> {
  try {
    return await parseVerifierKey(key)
  } catch (error) {
    throw new UsageError(`--key: ${(error as Error).message}`)
  }
}

/** Describes the signature of a backup. With `isKeyGiven`, {@link requireKey} has checked the key. */
export function describeSignature(signedBy: string | undefined, isKeyGiven: boolean): string {
  if (signedBy === undefined) return 'The backup is not signed. Its SHA-256 shows damage, but no change on purpose.'
  if (isKeyGiven) return `The key that you gave signed the backup, and nothing of it was changed since.`
  return (
    `The key ${signedBy} signed the backup. Compare it with the key that you keep, or give --key: a backup that was changed ` +
    'on purpose can be signed by another key.'
  )
}
