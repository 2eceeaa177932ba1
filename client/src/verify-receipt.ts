import { findRepeatedMember } from './distinct-members.ts'
import {
  hashLeaf,
  isIncluded,
  parseCheckpoint,
  parseProof,
  parseVerifierKey,
  type VerifierKey,
  verifyNote,
} from './ledger-proof.ts'
import {
  canonicalJson,
  decodeBase64,
  decodeBase64Url,
  encodeBase64,
  FormatError,
  sha256,
  verifyEd25519,
} from './ledger-text.ts'
import type { ConsentReceipt } from './wire.ts'

/**
 * A receipt that cannot be verified. `part` is the wrong member, or `receipt` for the whole, or `key` or `text` for
 * these options.
 */
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
  entry: ConsentReceipt['entry']
  key: string
  /** The log, and its state that contains the entry. */
  origin: string
  index: number
  size: number
  root_hash: string
  /**
   * Whether the entry names a text. A `stated` text is in the receipt, and a `given` one comes from the caller. Its
   * hash is the sealed one.
   */
  text: 'none' | 'stated' | 'given'
}

export type VerifyReceiptOptions = {
  /** The note key that must have signed. By default, the receipt's own key. */
  key?: string | undefined
  /** The text of the consent that the person answered, in UTF-8. */
  text?: Uint8Array | undefined
}

type Receipt = Record<string, unknown> & {
  entry: ConsentReceipt['entry']
  salt: string
  tlog_proof: string
  verifier_key: string
  jws: string
}

const receiptFormat = 'kith consent receipt 1'
const maxReceiptBytes = 1_048_576
const members = ['entry', 'salt', 'tlog_proof', 'verifier_key', 'jws'] as const

/**
 * Verifies a consent receipt, JSON in UTF-8, without a server: in Node, and in a browser on a page with HTTPS or on
 * localhost. Throws a {@link ReceiptError} that names the wrong part.
 *
 * ```ts
 * import { verifyReceipt } from '@kith/client'
 *
 * const changed = new TextEncoder().encode('{"entry":{}}')
 * console.log(await verifyReceipt(changed).catch(error => error.message)) // The receipt has no member salt.
 * ```
 */
export async function verifyReceipt(bytes: Uint8Array, options: VerifyReceiptOptions = {}): Promise<VerifiedReceipt> {
  const receipt = parseReceipt(bytes)
  const key = await checkKey(receipt, options.key)
  await checkSignature(receipt, key)
  if (receipt['dct:conformsTo'] !== receiptFormat)
    fail('dct:conformsTo', `This version of kith verifies receipts of the format "${receiptFormat}" only.`)
  const { entry } = receipt
  const log = await checkInclusion(receipt, key)
  return { entry, key: receipt.verifier_key, ...log, text: await checkText(receipt, options.text) }
}

function fail(part: string, message: string): never {
  throw new ReceiptError(part, message)
}

/** Runs the check of a part. Turns a FormatError into a ReceiptError of the part. */
async function checkPart<Result>(part: string, check: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await check()
  } catch (error) {
    if (error instanceof FormatError) fail(part, error.message)
    throw error
  }
}

function parseReceipt(bytes: Uint8Array): Receipt {
  if (bytes.length > maxReceiptBytes) fail('receipt', 'The receipt is larger than 1 MiB.')
  const content = parseJson(bytes, 'receipt', 'receipt')
  // A saved response has the receipt in its envelope.
  const isEnvelope = isObject(content) && isObject(content.data)
  const foreign = isEnvelope ? Object.keys(content).find(name => name !== 'status' && name !== 'data') : undefined
  if (foreign !== undefined)
    fail(
      'receipt',
      `The response around the receipt has the member ${JSON.stringify(foreign)}, which no signature covers.`,
    )
  const receipt = isEnvelope ? content.data : content
  if (!isObject(receipt)) return fail('receipt', 'The receipt is not a JSON object.')
  for (const member of members) {
    const value = receipt[member]
    if (value === undefined) fail(member, `The receipt has no member ${member}.`)
    if (member === 'entry' ? !isObject(value) : typeof value !== 'string')
      fail(member, `The member ${member} of the receipt is not ${member === 'entry' ? 'an object' : 'a text'}.`)
  }
  return receipt as Receipt
}

/** Parses JSON in UTF-8 without repeated members. `noun` names it in the messages of refusals. */
function parseJson(bytes: Uint8Array, part: string, noun: string): unknown {
  let text: string
  let value: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    value = JSON.parse(text)
  } catch {
    return fail(part, `The ${noun} is not JSON in UTF-8.`)
  }
  const repeated = findRepeatedMember(text)
  if (repeated === undefined) return value
  return fail(
    part,
    `An object of the ${noun} has the member ${JSON.stringify(repeated)} twice. Programs differ in which of the two they read.`,
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

async function checkKey({ verifier_key }: Receipt, expected: string | undefined): Promise<VerifierKey> {
  const key = await checkPart('verifier_key', () => parseVerifierKey(verifier_key))
  if (expected === undefined) return key
  await checkPart('key', () => parseVerifierKey(expected))
  if (expected !== verifier_key)
    fail('verifier_key', `The receipt is signed by the key ${verifier_key}, not by the key that you gave.`)
  return key
}

/** Checks that the key signed the receipt and each of its members. */
async function checkSignature({ jws, ...signed }: Receipt, key: VerifierKey): Promise<void> {
  const hashes = await signedHashes(jws, key)
  if (!hashes)
    return fail('jws', 'The signature of the receipt is wrong: it is not by the key of the receipt, or it was changed.')
  for (const [member, value] of Object.entries(signed)) {
    if (!Object.hasOwn(hashes, member)) fail(member, `The member ${member} was added: the signature does not cover it.`)
    if ((await hashOf(value)) !== hashes[member])
      fail(member, `The member ${member} was changed after the receipt was signed.`)
  }
  const missing = Object.keys(hashes).find(member => !Object.hasOwn(signed, member))
  if (missing !== undefined) fail(missing, `The member ${missing} was removed from the receipt.`)
}

/** The payload of the compact JWS (RFC 7515): the hashes of the members. Undefined if the key did not sign it. */
async function signedHashes(jws: string, { publicKey }: VerifierKey): Promise<Record<string, string> | undefined> {
  const parts = jws.split('.')
  const [header, payload, signature] = parts.map(decodeBase64Url)
  if (parts.length !== 3 || !header || !payload || !signature) return undefined
  const signed = new TextEncoder().encode(`${parts[0]}.${parts[1]}`)
  if (!(await verifyEd25519(publicKey, signature, signed))) return undefined
  const { alg, crit } = parseObject(header, 'header of the signature')
  if (alg !== 'EdDSA' || crit !== undefined) return undefined
  return parseObject(payload, 'content of the signature') as Record<string, string>
}

function parseObject(bytes: Uint8Array, noun: string): Record<string, unknown> {
  const value = parseJson(bytes, 'jws', noun)
  return isObject(value) ? value : fail('jws', `The ${noun} is not a JSON object.`)
}

/** The hash of a member; undefined for a text without canonical JSON, such as a lone surrogate. */
async function hashOf(value: unknown): Promise<string | undefined> {
  try {
    const hash = await sha256(new TextEncoder().encode(canonicalJson(value)))
    return encodeBase64(hash).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  } catch (error) {
    if (error instanceof FormatError || error instanceof RangeError) return undefined
    throw error
  }
}

async function checkInclusion({ entry, salt, tlog_proof }: Receipt, key: VerifierKey) {
  const { index, hashes, checkpoint } = await checkPart('tlog_proof', () => parseProof(tlog_proof))
  const text = await checkPart('tlog_proof', () => verifyNote(checkpoint, [key]))
  const { origin, size, rootHash } = await checkPart('tlog_proof', () => parseCheckpoint(text))
  if (origin !== key.name)
    fail('tlog_proof', `The checkpoint is of the log ${origin}, but its key is that of the log ${key.name}.`)
  const saltOfLeaf = decodeBase64(salt)
  if (saltOfLeaf?.length !== 32) return fail('salt', 'The salt is not base64 of 32 bytes.')
  const data = await sha256(saltOfLeaf, new TextEncoder().encode(canonicalJson(entry)))
  if (!(await isIncluded({ index, leafHash: await hashLeaf(data), size, rootHash, hashes })))
    fail(
      'tlog_proof',
      'The proof does not lead from the entry and its salt to the checkpoint: the entry is not in the log.',
    )
  return { origin, index, size, root_hash: encodeBase64(rootHash) }
}

/** Checks the text of the receipt and the text of the caller against the hash in the entry, which the log sealed. */
async function checkText(receipt: Receipt, given: Uint8Array | undefined): Promise<VerifiedReceipt['text']> {
  const { text_sha256 } = receipt.entry
  const stated = textOf(receipt)
  if (given !== undefined && text_sha256 === undefined)
    fail('text', 'The entry names no text, so the receipt proves nothing about the text that you gave.')
  if (stated !== undefined && (await hexHash(new TextEncoder().encode(stated))) !== text_sha256)
    fail('dpv:hasRecordOfActivity', 'The text of the receipt is not the one whose hash the log sealed.')
  if (given !== undefined && (await hexHash(given)) !== text_sha256)
    fail(
      'text',
      'The text that you gave is not the one that the person answered to, byte for byte: the log sealed another hash.',
    )
  if (given !== undefined) return 'given'
  return stated === undefined ? 'none' : 'stated'
}

const hexHash = async (bytes: Uint8Array) =>
  Array.from(await sha256(bytes), byte => byte.toString(16).padStart(2, '0')).join('')

type Described = {
  'dpv:hasRecordOfActivity'?: { 'dpv:hasNotice'?: { 'rdf:value'?: { '@value'?: unknown } } }
}

function textOf(receipt: Receipt): string | undefined {
  const value = (receipt as Described)['dpv:hasRecordOfActivity']?.['dpv:hasNotice']?.['rdf:value']?.['@value']
  return typeof value === 'string' ? value : undefined
}
