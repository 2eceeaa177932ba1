import { hash } from 'node:crypto'
import { compactVerify } from 'jose/jws/compact/verify'
import { parseExactly } from '../parse-json.ts'
import { parseCheckpoint } from './checkpoint.ts'
import { leafData } from './entry.ts'
import { parseVerifierKey, type VerifierKey, verifyNote } from './note.ts'
import { isIncluded, leafHash, parseProof } from './proof.ts'
import { memberHash, type Receipt, receiptFormat } from './receipt.ts'
import { decodeBase64, FormatError } from './strict-text.ts'

/** A receipt that proves nothing. `part` is the member that is wrong, `receipt` for the whole, `key` or `text` for what was given. */
export class ReceiptError extends Error {
  override readonly name = 'ReceiptError'
  readonly part: string
  constructor(part: string, message: string) {
    super(message)
    this.part = part
  }
}

/** The facts that a verified receipt proves. */
export type VerifiedReceipt = {
  entry: Receipt['entry']
  key: string
  /** The log and the state of it that contain the entry. */
  origin: string
  index: number
  size: number
  root_hash: string
  /** Whether the entry names a text: `stated` is in the receipt and `given` by the caller, and its hash is the sealed one. */
  text: 'none' | 'stated' | 'given'
}

export type VerifyOptions = {
  /** The note key that must have signed. Without it, the receipt's own key is used. */
  key?: string | undefined
  /** The text that the person answered to, in UTF-8. */
  text?: Uint8Array | undefined
}

const maxReceiptBytes = 1_048_576
const members = ['entry', 'salt', 'tlog_proof', 'verifier_key', 'jws'] as const

/** Verifies a receipt, JSON in UTF-8, without a server. Throws a {@link ReceiptError} that names the part that is wrong. */
export async function verifyReceipt(bytes: Uint8Array, options: VerifyOptions = {}): Promise<VerifiedReceipt> {
  const receipt = parseReceipt(bytes)
  const key = checkKey(receipt, options.key)
  await checkSignature(receipt, key)
  if (receipt['dct:conformsTo'] !== receiptFormat)
    fail('dct:conformsTo', `This version of kith verifies receipts of the format "${receiptFormat}" only.`)
  const { entry } = receipt
  const log = checkInclusion(receipt, key)
  return { entry, key: receipt.verifier_key, ...log, text: checkText(receipt, options.text) }
}

function fail(part: string, message: string): never {
  throw new ReceiptError(part, message)
}

/** Runs a check of a part. A FormatError becomes a ReceiptError of the part. */
function checkPart<Result>(part: string, check: () => Result): Result {
  try {
    return check()
  } catch (error) {
    if (error instanceof FormatError) fail(part, error.message)
    throw error
  }
}

function parseReceipt(bytes: Uint8Array): Receipt {
  if (bytes.length > maxReceiptBytes) fail('receipt', 'The receipt is larger than 1 MiB.')
  const content = parseJson(bytes)
  // A saved response has the receipt in its envelope.
  const receipt = isObject(content) && isObject(content.data) ? content.data : content
  if (!isObject(receipt)) fail('receipt', 'The receipt is not a JSON object.')
  for (const member of members) {
    const value = receipt[member]
    if (value === undefined) fail(member, `The receipt has no member ${member}.`)
    if (member === 'entry' ? !isObject(value) : typeof value !== 'string')
      fail(member, `The member ${member} of the receipt is not ${member === 'entry' ? 'an object' : 'a text'}.`)
  }
  return receipt as Receipt
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseExactly(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return fail('receipt', 'The receipt is not JSON in UTF-8.')
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function checkKey({ verifier_key }: Receipt, expected: string | undefined): VerifierKey {
  const key = checkPart('verifier_key', () => parseVerifierKey(verifier_key))
  if (expected === undefined) return key
  checkPart('key', () => parseVerifierKey(expected))
  if (expected !== verifier_key)
    fail('verifier_key', `The receipt is signed by the key ${verifier_key}, not by the key that you gave.`)
  return key
}

/** Checks that the key signed the receipt, and that each member is the one that it signed. */
async function checkSignature({ jws, ...signed }: Receipt, { publicKey }: VerifierKey): Promise<void> {
  const wrong = 'The signature of the receipt is wrong: it is not by the key of the receipt, or it was changed.'
  const signature = jws.split('.').at(-1)!
  if (Buffer.from(signature, 'base64url').toString('base64url') !== signature) fail('jws', wrong)
  const { payload } = await compactVerify(jws, publicKey, { algorithms: ['EdDSA'] }).catch(() => fail('jws', wrong))
  const hashes = JSON.parse(new TextDecoder().decode(payload)) as Record<string, string>
  for (const [member, value] of Object.entries(signed)) {
    if (!Object.hasOwn(hashes, member)) fail(member, `The member ${member} was added: the signature does not cover it.`)
    if (hashOf(value) !== hashes[member]) fail(member, `The member ${member} was changed after the receipt was signed.`)
  }
  const missing = Object.keys(hashes).find(member => !Object.hasOwn(signed, member))
  if (missing !== undefined) fail(missing, `The member ${missing} was removed from the receipt.`)
}

/** The hash of a member; undefined for a text that has no canonical JSON, such as half a surrogate pair. */
function hashOf(value: unknown): string | undefined {
  try {
    return memberHash(value)
  } catch {
    return undefined
  }
}

function checkInclusion({ entry, salt, tlog_proof }: Receipt, key: VerifierKey) {
  const { index, hashes, checkpoint } = checkPart('tlog_proof', () => parseProof(tlog_proof))
  const { origin, size, rootHash } = checkPart('tlog_proof', () => parseCheckpoint(verifyNote(checkpoint, [key])))
  if (origin !== key.name)
    fail('tlog_proof', `The checkpoint is of the log ${origin}, but its key is that of the log ${key.name}.`)
  const saltOfLeaf = decodeBase64(salt)
  if (saltOfLeaf?.length !== 32) fail('salt', 'The salt is not base64 of 32 bytes.')
  const leaf = leafHash(leafData(saltOfLeaf, entry))
  if (!isIncluded({ index, leafHash: leaf, size, rootHash, hashes }))
    fail(
      'tlog_proof',
      'The proof does not lead from the entry and its salt to the checkpoint: the entry is not in the log.',
    )
  return { origin, index, size, root_hash: rootHash.toString('base64') }
}

/** Checks the text of the receipt and that of the caller against the hash in the entry, which the log sealed. */
function checkText(receipt: Receipt, given: Uint8Array | undefined): VerifiedReceipt['text'] {
  const { text_sha256 } = receipt.entry
  const stated = textOf(receipt)
  if (given !== undefined && text_sha256 === undefined)
    fail('text', 'The entry names no text, so the receipt proves nothing about the text that you gave.')
  if (stated !== undefined && sha256(stated) !== text_sha256)
    fail('dpv:hasRecordOfActivity', 'The text of the receipt is not the one whose hash the log sealed.')
  if (given !== undefined && sha256(given) !== text_sha256)
    fail(
      'text',
      'The text that you gave is not the one that the person answered to, byte for byte: the log sealed another hash.',
    )
  if (given !== undefined) return 'given'
  return stated === undefined ? 'none' : 'stated'
}

const sha256 = (text: string | Uint8Array) => hash('sha256', text, 'hex')

type Described = {
  'dpv:hasRecordOfActivity'?: { 'dpv:hasNotice'?: { 'rdf:value'?: { '@value'?: unknown } } }
}

function textOf(receipt: Receipt): string | undefined {
  const value = (receipt as Described)['dpv:hasRecordOfActivity']?.['dpv:hasNotice']?.['rdf:value']?.['@value']
  return typeof value === 'string' ? value : undefined
}
