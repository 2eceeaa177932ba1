import { decodeProtectedHeader } from 'jose'
import { CompactSign } from 'jose/jws/compact/sign'
import { compactVerify } from 'jose/jws/compact/verify'
import { findRepeatedMember } from '../../client/src/distinct-members.ts'
import { parseVerifierKey, type VerifierKey } from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { parseJson } from '../values/parse-json.ts'
import { formatVerifierKey, organizationOfOrigin } from './note.ts'

/** The format of certificates. A later format gets another number. */
const certificateFormat = 'kith erasure certificate 1'

/** The facts of an erasure. They name people only by internal identifiers. */
export type ErasureFacts = {
  id: number
  at: string
  person_id: string
  /** The people who had been merged into the person. */
  merged_ids: string[]
  /** The records that were erased with the person. */
  record_ids: { stack_key: string; record_id: string }[]
  reason: string
  records: 'keep' | 'linked'
  /** The number of rows that were deleted or blanked, by table. */
  removed: Record<string, number>
  /** The number of keyed hashes that stay. They prevent that the person returns by mistake. */
  tombstones: number
  not_removed: readonly string[]
}

/** The content of a certificate. `verifier_key` is the note key of the ledger that signed it. */
export type CertificateContent = {
  format: typeof certificateFormat
  organization: string
  verifier_key: string
  erasure: ErasureFacts
}

/** A certificate that proves nothing. `part` names the wrong part. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly part: 'certificate' | 'signature' | 'verifier_key' | 'format' | 'key'
  constructor(part: CertificateError['part'], message: string) {
    super(message)
    this.part = part
  }
}

type Signer = { kid: string; privateKey: Parameters<typeof formatVerifierKey>[1] }

/** Signs a certificate: a compact JWS by the key of the ledger. `origin` is the name of the ledger. */
export async function signCertificate(origin: string, erasure: ErasureFacts, signer: Signer): Promise<string> {
  const organization = organizationOfOrigin(origin)
  const verifier_key = formatVerifierKey(origin, signer.privateKey)
  const content: CertificateContent = { format: certificateFormat, organization, verifier_key, erasure }
  return new CompactSign(Buffer.from(JSON.stringify(content)))
    .setProtectedHeader({ alg: 'EdDSA', kid: signer.kid, typ: 'kith-erasure+jws' })
    .sign(signer.privateKey)
}

/** Reads a certificate that kith itself has stored, without checking its signature. */
export const readCertificate = (certificate: string): CertificateContent =>
  JSON.parse(Buffer.from(certificate.split('.')[1]!, 'base64url').toString())

const compactForm = /^[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * Finds the certificate in a text, which is the certificate itself or a response of the API that contains it. Throws a
 * {@link CertificateError} if that response repeats a member.
 */
export function findCertificate(text: string): string | undefined {
  const trimmed = text.trim()
  if (compactForm.test(trimmed)) return trimmed
  const content = parseJson(trimmed) as { data?: { certificate?: unknown }; certificate?: unknown } | null | undefined
  const { certificate } = content?.data ?? content ?? {}
  if (!content || typeof certificate !== 'string' || !compactForm.test(certificate)) return undefined
  checkMembers(trimmed, 'file')
  const foreign = content.data ? Object.keys(content).find(name => name !== 'status' && name !== 'data') : undefined
  if (foreign === undefined) return certificate
  const member = JSON.stringify(foreign)
  return fail('certificate', `The response around the certificate has the member ${member}, which no signature covers.`)
}

function fail(part: CertificateError['part'], message: string): never {
  throw new CertificateError(part, message)
}

/** If a name occurs twice, programs differ in which of the two members they read. */
function checkMembers(json: string, noun: string) {
  const repeated = findRepeatedMember(json)
  if (repeated === undefined) return
  const member = JSON.stringify(repeated)
  const message = `An object of the ${noun} has the member ${member} twice. Programs differ in which of the two they read.`
  fail('certificate', message)
}

/**
 * Verifies a certificate without a server. `key` is the note key that must have signed. By default, it is the key in
 * the certificate. Throws a {@link CertificateError}.
 */
export async function verifyCertificate(
  certificate: string,
  { key }: { key?: string | undefined } = {},
): Promise<CertificateContent> {
  const content = parseContent(certificate)
  const [header, payload] = certificate.split('.').map(part => Buffer.from(part, 'base64url').toString())
  checkMembers(header!, 'header of the certificate')
  checkMembers(payload!, 'certificate')
  const { verifier_key, format } = content
  const { publicKey } = await checkKey(verifier_key, 'verifier_key')
  if (key !== undefined) {
    await checkKey(key, 'key')
    if (key !== verifier_key)
      fail('verifier_key', `The certificate is signed by the key ${verifier_key}, not by the key that you gave.`)
  }
  const signature = certificate.split('.')[2]!
  const isCanonical = Buffer.from(signature, 'base64url').toString('base64url') === signature
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') }
  const verifying = compactVerify(certificate, jwk, { algorithms: ['EdDSA'] })
  const isSigned = await verifying.then(
    () => isCanonical,
    () => false,
  )
  if (!isSigned)
    fail(
      'signature',
      'The signature is wrong: it is not by the key of the certificate, or the certificate was changed.',
    )
  if (format !== certificateFormat)
    fail('format', `This version of kith verifies certificates of the format "${certificateFormat}" only.`)
  return content
}

function parseContent(certificate: string): CertificateContent {
  try {
    decodeProtectedHeader(certificate)
    const content = readCertificate(certificate)
    const isComplete = typeof content.verifier_key === 'string' && typeof content.erasure === 'object'
    if (isComplete && compactForm.test(certificate)) return content
  } catch {}
  return fail('certificate', 'This is no certificate of an erasure: a compact JWS is expected.')
}

async function checkKey(text: string, part: 'verifier_key' | 'key'): Promise<VerifierKey> {
  try {
    return await parseVerifierKey(text)
  } catch (error) {
    if (error instanceof FormatError) fail(part, error.message)
    throw error
  }
}
