import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import {
  type Checkpoint,
  checkName,
  firstLineOfProof,
  isKeyName,
  type Proof,
  parseNote,
} from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { hashBytes } from './tree.ts'

// The texts that the ledger publishes: signed notes (https://c2sp.org/signed-note) with Ed25519 keys, checkpoints and
// proofs. The client verifies them.

/** A key that signs notes: an Ed25519 private key and its name. */
export type SignerKey = { name: string; privateKey: KeyObject }

/** The key of the organization in the origin of its ledger, `<name>/<organization>/<log_id>`. */
export const organizationOfOrigin = (origin: string): string => origin.split('/').at(-2) ?? ''

const ed25519 = Buffer.of(0x01)
const idBytes = 4

/** The key ID of an Ed25519 public key of 32 bytes. */
const keyId = (name: string, publicKey: Uint8Array): Buffer =>
  createHash('sha256').update(`${name}\n`).update(ed25519).update(publicKey).digest().subarray(0, idBytes)

/** The 32 bytes of an Ed25519 public key, or of the public key of a private one. */
function rawPublicKey(key: KeyObject): Buffer {
  const { x, crv } = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' })
  if (crv !== 'Ed25519') throw new TypeError('the key is not an Ed25519 key')
  return Buffer.from(x!, 'base64url')
}

/**
 * Formats a verifier key: `name+hash+base64`. The key is public or private. Throws a FormatError for an invalid name.
 */
export function formatVerifierKey(name: string, key: KeyObject): string {
  checkName(name)
  const publicKey = rawPublicKey(key)
  return `${name}+${keyId(name, publicKey).toString('hex')}+${Buffer.concat([ed25519, publicKey]).toString('base64')}`
}

/**
 * Signs a text, which ends with a newline. Throws a FormatError if the text cannot be a note, or for an invalid name.
 */
export function signNote(text: string, keys: SignerKey[]): string {
  const note = `${text}\n${keys.map(key => signatureLineOf(text, key)).join('')}`
  parseNote(note)
  return note
}

function signatureLineOf(text: string, { name, privateKey }: SignerKey): string {
  const signature = sign(null, Buffer.from(text), privateKey)
  return `— ${name} ${Buffer.concat([keyId(name, rawPublicKey(privateKey)), signature]).toString('base64')}\n`
}

/**
 * Formats the text of a checkpoint (https://c2sp.org/tlog-checkpoint), to be signed as a note. Throws a FormatError for
 * an origin that cannot be a key's name.
 */
export function formatCheckpoint({ origin, size, rootHash }: Checkpoint): string {
  if (!isKeyName(origin))
    throw new FormatError('The origin of a log is not empty and has no spaces, control characters and plus signs.')
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${size} is not the size of a log`)
  if (rootHash.length !== hashBytes) throw new RangeError(`a root hash has ${hashBytes} bytes, not ${rootHash.length}`)
  return `${origin}\n${size}\n${Buffer.from(rootHash).toString('base64')}\n`
}

/** Formats a proof (https://c2sp.org/tlog-proof). `checkpoint` is a signed note. */
export function formatProof({ index, hashes, checkpoint }: Proof): string {
  const siblings = hashes.map(sibling => Buffer.from(sibling).toString('base64'))
  return `${[firstLineOfProof, `index ${index}`, ...siblings].join('\n')}\n\n${checkpoint}`
}
