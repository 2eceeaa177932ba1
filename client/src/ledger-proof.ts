import { concat, decodeBase64, FormatError, parseDecimal, sha256, verifyEd25519 } from './ledger-text.ts'

// Verifies proofs of https://c2sp.org/tlog-proof: a Merkle proof of RFC 6962 that leads to a signed checkpoint.

/** A key that verifies notes (https://c2sp.org/signed-note). `id` is the key ID, in hexadecimal. */
export type VerifierKey = { name: string; id: string; publicKey: Uint8Array }

/** A state of a log (https://c2sp.org/tlog-checkpoint). */
export type Checkpoint = { origin: string; size: number; rootHash: Uint8Array }

const ed25519 = 0x01
const keyBytes = 32
const signatureBytes = 64
const hashBytes = 32
const idBytes = 4
const maxSignatures = 100
/** A tree of 2^53 leaves has proofs of at most 53 hashes. */
const maxHashes = 53
export const firstLineOfProof = 'c2sp.org/tlog-proof@v1'

/** Parses a verifier key: `name+hash+base64`. Throws a FormatError. */
export async function parseVerifierKey(text: string): Promise<VerifierKey> {
  const [, name, id, base64] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/s.exec(text) ?? []
  if (name === undefined) throw new FormatError('A verifier key has the form name+hash+base64.')
  checkName(name)
  const encoded = decodeBase64(base64!)
  if (!encoded) throw new FormatError('The last part of the verifier key is not base64.')
  if (encoded[0] !== ed25519 || encoded.length !== 1 + keyBytes)
    throw new FormatError('The verifier key is not an Ed25519 key.')
  const hash = await sha256(new TextEncoder().encode(`${name}\n`), encoded)
  if (hexOf(hash.subarray(0, idBytes)) !== id)
    throw new FormatError('The hash of the verifier key is not that of its name and key: a part of it was changed.')
  return { name, id: id!, publicKey: encoded.subarray(1) }
}

const hexOf = (bytes: Uint8Array) => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')

/** Whether a text can be the name of a key: not empty, without Unicode spaces, control characters and plus signs. */
export const isKeyName = (name: string): boolean => /^[^\p{White_Space}\p{Cc}\p{Surrogate}+]+$/u.test(name)

export function checkName(name: string): void {
  if (!isKeyName(name))
    throw new FormatError('The name of a key is not empty and has no spaces, control characters and plus signs.')
}

type Signature = { name: string; id: string; signature: Uint8Array }

/**
 * Verifies a note and returns its text. Signatures of other keys than `keys` are ignored. Throws a FormatError if the note is malformed, if
 * none of the keys signed it, or if a signature of one of them is wrong.
 */
export async function verifyNote(note: string, keys: readonly VerifierKey[]): Promise<string> {
  const { text, signatures } = parseNote(note)
  let isSigned = false
  for (const { name, id, signature } of signatures) {
    const key = keys.find(each => each.name === name && each.id === id)
    if (!key) continue
    const isRight =
      signature.length === signatureBytes &&
      (await verifyEd25519(key.publicKey, signature, new TextEncoder().encode(text)))
    if (!isRight) throw new FormatError(`The signature of the note by the key ${name}+${id} is wrong.`)
    isSigned = true
  }
  if (isSigned) return text
  const names = keys.map(({ name, id }) => `${name}+${id}`).join(', ')
  throw new FormatError(`The note is not signed by the key ${names}.`)
}

/** Parses a note without verifying it. Throws a FormatError. */
export function parseNote(note: string): { text: string; signatures: Signature[] } {
  if (/\p{Surrogate}/u.test(note)) throw new FormatError('The note is not well-formed Unicode.')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no control character but the newline.
  if (/[\0-\x09\x0b-\x1f]/.test(note))
    throw new FormatError('The note contains a control character other than the newline.')
  const end = note.lastIndexOf('\n\n')
  if (end === -1) throw new FormatError('The note has no blank line between its text and its signatures.')
  if (!note.endsWith('\n')) throw new FormatError('The note does not end with a newline.')
  const lines = note.slice(end + 2).split('\n', maxSignatures + 2)
  if (lines.at(-1) === '') lines.pop()
  if (lines.length === 0) throw new FormatError('The note has no signature.')
  if (lines.length > maxSignatures) throw new FormatError(`The note has more than ${maxSignatures} signatures.`)
  return { text: note.slice(0, end + 1), signatures: lines.map(parseSignature) }
}

function parseSignature(line: string): Signature {
  const [, name, base64] = /^— ([^ ]+) ([^ ]+)$/u.exec(line) ?? []
  if (name === undefined) throw new FormatError('A signature of the note has not the form "— name base64".')
  checkName(name)
  const bytes = decodeBase64(base64!)
  if (!bytes) throw new FormatError('A signature of the note is not base64.')
  if (bytes.length <= idBytes) throw new FormatError('A signature of the note is too short.')
  return { name, id: hexOf(bytes.subarray(0, idBytes)), signature: bytes.subarray(idBytes) }
}

/** Parses the text of a checkpoint: the text of a verified note with its last newline. Throws a FormatError. */
export function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new FormatError('The checkpoint does not end with a newline.')
  const [origin, sizeText, rootText] = lines
  if (origin === undefined || sizeText === undefined || rootText === undefined)
    throw new FormatError('A checkpoint has three lines: origin, size and root hash.')
  if (lines.includes('')) throw new FormatError('The checkpoint contains an empty line.')
  const size = parseDecimal(sizeText)
  if (size === undefined)
    throw new FormatError('The size of the checkpoint is not a decimal number up to 2^53 - 1 without leading zeros.')
  const rootHash = decodeBase64(rootText)
  if (rootHash?.length !== hashBytes)
    throw new FormatError(`The root hash of the checkpoint is not base64 of ${hashBytes} bytes.`)
  return { origin, size, rootHash }
}

/** A proof that can be verified offline: an inclusion proof and the signed checkpoint that it leads to. */
export type Proof = { index: number; hashes: readonly Uint8Array[]; checkpoint: string }

/** Parses a proof. The checkpoint is returned unchecked. Throws a FormatError. */
export function parseProof(text: string): Proof {
  const end = text.indexOf('\n\n')
  if (end === -1) throw new FormatError('The proof has no blank line before its checkpoint.')
  const checkpoint = text.slice(end + 2)
  const lines = text.slice(0, end).split('\n', maxHashes + 4)
  if (lines.shift() !== firstLineOfProof)
    throw new FormatError(`The first line of the proof is not ${firstLineOfProof}.`)
  const extra = lines[0]?.startsWith('extra ') ? lines.shift()!.slice('extra '.length) : ''
  if (!decodeBase64(extra)) throw new FormatError('The extra data of the proof is not base64.')
  const index = parseDecimal(/^index (.*)$/.exec(lines.shift() ?? '')?.[1] ?? '')
  if (index === undefined)
    throw new FormatError('The index of the proof is not a decimal number up to 2^53 - 1 without leading zeros.')
  if (lines.length > maxHashes) throw new FormatError(`The proof has more than ${maxHashes} hashes.`)
  return { index, hashes: lines.map(parseHash), checkpoint }
}

function parseHash(line: string, index: number): Uint8Array {
  const bytes = decodeBase64(line)
  if (bytes?.length !== hashBytes)
    throw new FormatError(`The hash ${index + 1} of the proof is not base64 of ${hashBytes} bytes.`)
  return bytes
}

const [leafPrefix, nodePrefix] = [Uint8Array.of(0), Uint8Array.of(1)]

/** The hash of a leaf: SHA-256(0x00 || data). */
export const hashLeaf = (data: Uint8Array): Promise<Uint8Array> => sha256(leafPrefix, data)

/**
 * Whether `hashes` prove that the leaf with `leafHash` has the index `index` in the tree of `size` leaves and `rootHash`. False if index or
 * size is no count.
 */
export async function isIncluded(leaf: {
  index: number
  leafHash: Uint8Array
  size: number
  rootHash: Uint8Array
  hashes: readonly Uint8Array[]
}): Promise<boolean> {
  let [node, last] = [leaf.index, leaf.size - 1]
  if (!Number.isSafeInteger(node) || !Number.isSafeInteger(leaf.size) || node < 0 || node > last) return false
  const halve = () => {
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  let root = leaf.leafHash
  // RFC 9162, 2.1.3.2. Bit operations would lose the bits above 2^31.
  for (const sibling of leaf.hashes) {
    if (last === 0) return false
    const isLeftOfSibling = node % 2 === 0 && node !== last
    // A last node without a sibling moves up to the next level unchanged.
    if (node % 2 === 0 && node === last) while (node % 2 === 0 && node !== 0) halve()
    halve()
    root = await sha256(concat(isLeftOfSibling ? [nodePrefix, root, sibling] : [nodePrefix, sibling, root]))
  }
  return (
    last === 0 && root.length === leaf.rootHash.length && root.every((byte, index) => byte === leaf.rootHash[index])
  )
}
