import type { KeyObject } from 'node:crypto'
import { CompactSign } from 'jose/jws/compact/sign'
import type { Proof } from '../../client/src/ledger-proof.ts'
import { canonicalJson } from '../../client/src/ledger-text.ts'
import { channelTable } from '../values/channels.ts'
import { formatProof, formatVerifierKey } from './note.ts'
import { memberHash, type Receipt, receiptFormat, type UnsignedReceipt } from './receipt.ts'
import type { LedgerEntry } from './schema.ts'

/** The members that prove the rest. DPV has no terms for them. */
const proofTerms = {
  kith: 'urn:uuid:8314859d-daf1-4b99-9871-65e878093237#',
  entry: { '@id': 'kith:entry', '@type': '@json' },
  salt: 'kith:salt',
  tlog_proof: 'kith:tlog_proof',
  verifier_key: 'kith:verifier_key',
  jws: 'kith:jws',
}

/** DPV publishes its vocabulary but no context, so each receipt has its own: the prefixes of DPV, and the types of values. */
const context = {
  dpv: 'https://w3id.org/dpv#',
  pd: 'https://w3id.org/dpv/pd#',
  'eu-gdpr': 'https://w3id.org/dpv/legal/eu/gdpr#',
  dct: 'http://purl.org/dc/terms/',
  rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
  xsd: 'http://www.w3.org/2001/XMLSchema#',
  'dct:created': { '@type': 'xsd:dateTime' },
  'dct:source': { '@type': '@id' },
  'dpv:hasLegalBasis': { '@type': '@id' },
  'dpv:hasPersonalData': { '@type': '@id' },
  'dpv:hasRight': { '@type': '@id' },
  'dpv:isIndicatedBy': { '@type': '@id' },
  'dpv:isIndicatedAtTime': { '@type': 'xsd:dateTime' },
  ...proofTerms,
}

/** The names that a receipt shows beside the entry, and the text that the person answered to. */
export type ReceiptNames = {
  consent_type: { key: string; name: string; description: string | null }
  text: { version: number; language: string; text: string; url: string | null; created_at: string } | null
}

export type ReceiptParts = {
  entry: LedgerEntry
  salt: Buffer
  /** The origin of the log, which is also the name of the key. */
  origin: string
  proof: Proof
  names: ReceiptNames
  /** When the receipt is issued. */
  created: string
  signer: { kid: string; privateKey: KeyObject }
}

/** Builds and signs a receipt. */
export async function buildReceipt(parts: ReceiptParts): Promise<Receipt> {
  const { entry, salt, origin, proof, signer } = parts
  const receipt = {
    ...describe(parts),
    entry,
    salt: salt.toString('base64'),
    tlog_proof: formatProof(proof),
    verifier_key: formatVerifierKey(origin, signer.privateKey),
  }
  return signReceipt(receipt, signer)
}

/** Adds the signature: it covers the hash of each member, so that a verifier can name the member that was changed. */
export async function signReceipt(
  receipt: UnsignedReceipt,
  { kid, privateKey }: ReceiptParts['signer'],
): Promise<Receipt> {
  const hashes = Object.fromEntries(Object.entries(receipt).map(([member, value]) => [member, memberHash(value)]))
  const payload = Buffer.from(canonicalJson(hashes))
  const jws = await new CompactSign(payload).setProtectedHeader({ alg: 'EdDSA', kid }).sign(privateKey)
  return { ...receipt, jws }
}

function describe({ entry, origin, proof, names, created }: ReceiptParts) {
  return {
    '@context': context,
    '@type': 'dpv:ConsentReceipt',
    'dct:identifier': `${origin}/${proof.index}`,
    'dct:conformsTo': receiptFormat,
    'dct:created': created,
    'dpv:hasRecordOfActivity': {
      '@type': 'dpv:ConsentRecord',
      'dct:identifier': `${entry.organization}/${entry.sequence}/${entry.consent_type_id}/${entry.channel}`,
      'dpv:hasDataSubject': { '@id': `urn:uuid:${entry.person_id}`, '@type': 'dpv:DataSubject' },
      'dpv:hasDataController': {
        '@type': 'dpv:DataController',
        'dpv:hasName': entry.organization,
      },
      'dpv:hasLegalBasis': 'eu-gdpr:A6-1-a',
      'dpv:hasPurpose': purposeOf(names),
      'dpv:hasPersonalData': channelTable[entry.channel].term,
      'dpv:hasRight': 'eu-gdpr:A7-3',
      ...(names.text && { 'dpv:hasNotice': noticeOf(names.text) }),
      'dpv:hasConsentStatus': statusOf(entry),
    },
  }
}

function purposeOf({ consent_type: { key, name, description } }: ReceiptNames) {
  return {
    '@type': 'dpv:Purpose',
    'dct:identifier': key,
    'dct:title': name,
    ...(description !== null && { 'dct:description': description }),
  }
}

function noticeOf({ version, language, text, url, created_at }: ReceiptNames['text'] & {}) {
  return {
    '@type': 'dpv:ConsentNotice',
    'dct:identifier': String(version),
    'dct:language': language,
    'dct:created': created_at,
    ...(url !== null && { 'dct:source': url }),
    'rdf:value': { '@value': text, '@language': language },
  }
}

function statusOf(entry: LedgerEntry) {
  const { method, at, collected_at, superseded, undated } = entry
  return {
    '@type': `dpv:${statusName(entry)}`,
    'dpv:isIndicatedBy': 'dpv:DataSubject',
    ...(!undated && { 'dpv:isIndicatedAtTime': collected_at ?? at }),
    ...(method !== undefined && { 'dpv:hasIndicationMethod': method }),
    'dpv:hasDuration': {
      '@type': 'dpv:UntilEventDuration',
      'rdf:value': superseded
        ? 'Superseded: an answer that was collected later already stood when this one arrived.'
        : 'Until the person answers again for this purpose and channel.',
    },
  }
}

/** The state of consent in the terms of DPV. A superseded answer did not follow the one that stood before it. */
function statusName({ state, pending, previous_state, superseded }: LedgerEntry): string {
  if (pending) return 'ConsentRequested'
  const changesGrant = previous_state === true && !superseded
  if (state) return changesGrant ? 'RenewedConsentGiven' : 'ConsentGiven'
  return changesGrant ? 'ConsentWithdrawn' : 'ConsentRefused'
}
