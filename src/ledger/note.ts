import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { decodeBase64, FormatError } from './strict-text.ts'

/** Signed notes of https://c2sp.org/signed-note, with Ed25519 keys. */

/** A key that verifies notes. `id` is the key ID, in hexadecimal. */
export type VerifierKey = { name: string; id: string; publicKey: KeyObject }

/** A key that signs notes: an Ed25519 private key and its name. */
export type SignerKey = { name: string; privateKey: KeyObject }

/** A signature line of a note. Other systems' keys can have any algorithm, so the length of `signature` is open. */
export type NoteSignature = { name: string; id: string; signature: Buffer }

/** A note that was parsed, but not verified. */
export type Note = { text: string; signatures: NoteSignature[] }

const ed25519 = 0x01
const keyBytes = 32
const signatureBytes = 64
const idBytes = 4
const maxSignatures = 100
const signatureLine = /^— ([^ ]+) ([^ ]+)$/u

/** Whether a text can be the name of a key: not empty, without Unicode spaces, control characters and plus signs. */
export function isKeyName(name: string): boolean {
  return name.isWellFormed() && /^[^\p{White_Space}\p{Cc}+]+$/u.test(name)
}

/** The key ID of an Ed25519 public key of 32 bytes, in hexadecimal. */
function keyId(name: string, publicKey: Uint8Array): string {
  const hash = createHash('sha256').update(`${name}\n`).update(Buffer.of(ed25519)).update(publicKey)
  return hash.digest().toString('hex', 0, idBytes)
}

/** The 32 bytes of an Ed25519 public key, or of the public key of a private one. */
export function rawPublicKey(key: KeyObject): Buffer {
  const { x, crv } = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' })
  if (crv !== 'Ed25519') throw new TypeError('the key is not an Ed25519 key')
  return Buffer.from(x!, 'base64url')
}

/** Formats a verifier key: `name+hash+base64`. The key is public or private. Throws a FormatError for a bad name. */
export function formatVerifierKey(name: string, key: KeyObject): string {
  checkName(name)
  const publicKey = rawPublicKey(key)
  return `${name}+${keyId(name, publicKey)}+${Buffer.concat([Buffer.of(ed25519), publicKey]).toString('base64')}`
}

/** Parses a verifier key: `name+hash+base64`. Throws a FormatError. */
export function parseVerifierKey(text: string): VerifierKey {
  const [, name, id, base64] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/s.exec(text) ?? []
  if (name === undefined) throw new FormatError('A verifier key has the form name+hash+base64.')
  checkName(name)
  const encoded = decodeBase64(base64!)
  if (!encoded) throw new FormatError('The last part of the verifier key is not base64.')
  if (encoded[0] !== ed25519 || encoded.length !== 1 + keyBytes)
    throw new FormatError('The verifier key is not an Ed25519 key.')
  const publicKey = encoded.subarray(1)
  if (keyId(name, publicKey) !== id)
    throw new FormatError('The hash of the verifier key is not that of its name and key: a part of it was changed.')
  return { name, id: id!, publicKey: publicKeyOf(publicKey) }
}

function publicKeyOf(bytes: Buffer): KeyObject {
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') } })
}

/** Signs a text, which ends with a newline. Throws a FormatError for a text that cannot be a note, and for a bad name. */
export function signNote(text: string, keys: SignerKey[]): string {
  checkCharacters(text)
  if (!text.endsWith('\n')) throw new FormatError('The text of a note ends with a newline.')
  return `${text}\n${keys.map(key => signatureLineOf(text, key)).join('')}`
}

function signatureLineOf(text: string, { name, privateKey }: SignerKey): string {
  checkName(name)
  const id = Buffer.from(keyId(name, rawPublicKey(privateKey)), 'hex')
  const signature = sign(null, Buffer.from(text), privateKey)
  return `— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`
}

/** Parses a note without verifying it. Throws a FormatError. */
export function parseNote(note: string): Note {
  checkCharacters(note)
  const end = note.lastIndexOf('\n\n')
  if (end === -1) throw new FormatError('The note has no blank line between its text and its signatures.')
  if (!note.endsWith('\n')) throw new FormatError('The note does not end with a newline.')
  const lines = note.slice(end + 2).split('\n', maxSignatures + 2)
  if (lines.at(-1) === '') lines.pop()
  if (lines.length === 0) throw new FormatError('The note has no signature.')
  if (lines.length > maxSignatures) throw new FormatError(`The note has more than ${maxSignatures} signatures.`)
  return { text: note.slice(0, end + 1), signatures: lines.map(parseSignature) }
}

function parseSignature(line: string): NoteSignature {
  const [, name, base64] = signatureLine.exec(line) ?? []
  if (name === undefined) throw new FormatError('A signature of the note has not the form "— name base64".')
  checkName(name)
  const bytes = decodeBase64(base64!)
  if (!bytes) throw new FormatError('A signature of the note is not base64.')
  if (bytes.length <= idBytes) throw new FormatError('A signature of the note is too short.')
  return { name, id: bytes.toString('hex', 0, idBytes), signature: bytes.subarray(idBytes) }
}

/**
 * Verifies a note and returns its text. Signatures of other keys than `keys` are ignored. Throws a FormatError if the note is
 * malformed, if none of the keys signed it, or if a signature of one of them is wrong.
 */
export function verifyNote(note: string, keys: VerifierKey[]): string {
  const { text, signatures } = parseNote(note)
  let verified = 0
  for (const { name, id, signature } of signatures) {
    const key = keys.find(candidate => candidate.name === name && candidate.id === id)
    if (!key) continue
    if (!isSignature(text, signature, key))
      throw new FormatError(`The signature of the note by the key ${name}+${id} is wrong.`)
    verified++
  }
  if (verified === 0) {
    const names = keys.map(({ name, id }) => `${name}+${id}`).join(', ')
    throw new FormatError(`The note is not signed by the key ${names}.`)
  }
  return text
}

function isSignature(text: string, signature: Buffer, { publicKey }: VerifierKey): boolean {
  return signature.length === signatureBytes && verify(null, Buffer.from(text), publicKey, signature)
}

function checkName(name: string) {
  if (!isKeyName(name))
    throw new FormatError('The name of a key is not empty and has no spaces, control characters and plus signs.')
}

function checkCharacters(text: string) {
  if (!text.isWellFormed()) throw new FormatError('The note is not well-formed Unicode.')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no control character but the newline.
  if (/[\0-\x09\x0b-\x1f]/.test(text))
    throw new FormatError('The note contains a control character other than the newline.')
}
