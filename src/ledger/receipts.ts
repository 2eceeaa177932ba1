import { hash, type KeyObject } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { CompactSign } from 'jose/jws/compact/sign'
import type { Proof } from '../../client/src/ledger-proof.ts'
import { canonicalJson } from '../../client/src/ledger-text.ts'
import { findPersonSql } from '../changes/people-sql.ts'
import type { Context } from '../db/context.ts'
import { currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Config } from '../process/config.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personAddresses, personOf } from '../route/person-addresses.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { type Channel, channels, channelTable, isChannel } from '../values/channels.ts'
import { refuse, refuseValues, retryInASecond } from '../values/errors.ts'
import { leafData } from './entry.ts'
import { readLedgerSigner } from './keys.ts'
import {
  type AnswerPlace,
  findEntry,
  proveInclusion,
  readOrigin,
  readStoredLedger,
  type StoredEntry,
  signCheckpoint,
} from './ledger.ts'
import { formatProof, formatVerifierKey } from './note.ts'
import { consentReceipt, type LedgerEntry, type ReceiptQuery, receiptQuery } from './schema.ts'
import { entryOf, readAnswersOf } from './seal.ts'
import { findAnswerSql, readTextSql } from './sql.ts'
import { GrowingTree } from './tree.ts'

/** The endpoints for receipts of a person's answers, by external and by internal identifier. */
export function receiptEndpoints({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  return personAddresses.map(({ path, params, suffix, by }) =>
    route<ReceiptQuery>({
      method: 'GET',
      path: `${path}/consents/{consent_type_id}/{channel}/receipt`,
      params: { ...params, consent_type_id: 'number', channel: 'key' },
      scope: 'consents:read',
      tag: 'People',
      operationId: `getConsentReceipt${suffix}`,
      summary: `Read the receipt of a consent answer${by}`,
      description:
        'A consent receipt of ISO/IEC TS 27560 in JSON-LD, signed, with the proof that the ledger sealed the answer. `kith verify` ' +
        'verifies it without a server. The request waits until the answer is sealed, usually less than a second. See docs/receipts.md.',
      query: receiptQuery,
      answer: consentReceipt,
      refusals: { 410: 'invalid_parameter' },
      handle: dataOf(call => readReceipt(ledgerOrigin, call)),
    }),
  )
}

/** An answer is sealed within a second. A request waits longer if the sealing process has just ended. */
const maxWaitMs = 4_000
const pollMs = 50

/**
 * Issues the receipt of an answer. `originName` begins the origin of the ledger. Throws a Fault of 400, 404, 410 or
 * 503.
 */
async function readReceipt(originName: string, call: Call<ReceiptQuery>): Promise<Receipt> {
  const { context, caller, params, body, signal } = call
  const { db, organization_id } = context
  const consent_type_id = Number(params.consent_type_id)
  const channel = channelOf(params.channel!)
  const person_id = await findPerson(call)
  const values = [organization_id, person_id, consent_type_id, channel, body.sequence ?? null]
  const [found] = await db.query<{ sequence: number }>(findAnswerSql, values, signal)
  if (!found) throwNoAnswer(body)
  const { sequence } = found
  const sealed = await waitForEntry(context, { sequence, consent_type_id, channel }, signal)
  const answers = await readAnswersOf(context, sequence)
  const answer = answers.find(given => given.consent_type_id === consent_type_id && given.channel === channel)
  if (!answer) throwNoAnswer(body)
  const entry = entryOf(caller.organization.key, answer)
  const receipt = await issueReceipt(context, { originName, entry, sealed }, signal)
  call.shown.add(peopleStackId, person_id)
  return receipt
}

function channelOf(text: string): Channel {
  if (isChannel(text)) return text
  return refuseValues({ path: '/channel', message: `must be ${channels.join(' or ')}` })
}

async function findPerson({ context: { db, organization_id }, params, signal }: Call<ReceiptQuery>): Promise<string> {
  const { by, identifier } = personOf(params)
  if (by === 'id') return identifier.toLowerCase()
  const [person] = await db.query<{ id: string | null }>(findPersonSql, [organization_id, identifier], signal)
  return person!.id ?? refuse('not_found', 'There is no such person.')
}

function throwNoAnswer({ sequence }: ReceiptQuery): never {
  if (sequence === undefined)
    return refuse('not_found', 'The person has not answered for this consent type on this channel.')
  const message = 'is no change in which the person answered for this consent type on this channel'
  return refuse('not_found', 'There is no such answer.', { details: [{ path: '/sequence', message }] })
}

/** Waits until an answer is sealed. Throws a Fault of 503 if it takes too long. */
async function waitForEntry(context: Context, answer: AnswerPlace, signal: Signal): Promise<StoredEntry> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const entry = await findEntry(context, answer, signal)
    if (entry) return entry
    if (waitedMs >= maxWaitMs)
      refuse(
        'operation_failed',
        'The answer is stored, but not yet sealed in the ledger. Retry after 1 second.',
        retryInASecond,
      )
    await setTimeout(pollMs)
  }
}

const erasedMessage = 'The answer was erased. The ledger has only a hash of it, which tells nothing.'

const throwChanged = (what: string): never =>
  refuse(
    'operation_failed',
    `The stored ${what} the ledger sealed, so there is no receipt. An administrator finds the difference with kith ledger verify.`,
  )

type SealedAnswer = { originName: string; entry: LedgerEntry; sealed: StoredEntry }

async function issueReceipt(
  context: Context,
  { originName, entry, sealed }: SealedAnswer,
  signal: Signal,
): Promise<Receipt> {
  const { index, salt, hash: sealedHash } = sealed
  if (salt === null) return refuse('invalid_parameter', erasedMessage, { status: 410 })
  if (!leafData(salt, entry).equals(sealedHash)) throwChanged('answer is not the one that')
  const [names, origin, signer, ledger] = await Promise.all([
    readNames(context, entry, signal),
    readOrigin(context, originName, signal),
    readLedgerSigner(context.db, signal),
    readStoredLedger(context, signal),
  ])
  if (names.text && hash('sha256', names.text.text) !== entry.text_sha256)
    throwChanged('text is not the one whose hash')
  const { hashes } = await proveInclusion(context, { ledger: ledger!, index }, signal)
  // The stored checkpoint may be older than the key. The current key signs the same tree again, so one key verifies
  // everything.
  const checkpoint = signCheckpoint(origin, new GrowingTree(ledger!.size, ledger!.edge), signer)
  const proof = { index, hashes, checkpoint }
  return buildReceipt({ entry, salt, origin, proof, names, created: new Date().toISOString(), signer })
}

async function readNames(
  context: Context,
  { consent_type_id, text_version }: LedgerEntry,
  signal: Signal,
): Promise<ReceiptNames> {
  const { db, organization_id } = context
  const { consent_types } = await currentDefinitions(context, signal)
  const consent_type = consent_types.find(({ id }) => id === consent_type_id)!
  if (text_version === undefined) return { consent_type, text: null }
  const values = [organization_id, consent_type_id, text_version]
  const [text] = await db.query<ReceiptNames['text'] & {}>(readTextSql, values, signal)
  return { consent_type, text: text ?? null }
}

/** The format of receipts. A later format gets another number. */
export const receiptFormat = 'kith consent receipt 1'

/** A receipt without its signature. The other members describe the entry in the terms of DPV. */
export type UnsignedReceipt = Record<string, unknown> & {
  entry: LedgerEntry
  /** The salt in base64. */
  salt: string
  tlog_proof: string
  verifier_key: string
}

/** A consent receipt: JSON-LD after ISO/IEC TS 27560, in the terms of DPV 2. docs/receipts.md describes each member. */
export type Receipt = UnsignedReceipt & { jws: string }

/** The hash of a member's value, which the signature covers: SHA-256 of its canonical JSON, in base64url. */
export function memberHash(value: unknown): string {
  return hash('sha256', canonicalJson(value), 'base64url')
}

/** The members that prove the others. DPV has no terms for them. */
const proofTerms = {
  kith: 'urn:uuid:8314859d-daf1-4b99-9871-65e878093237#',
  entry: { '@id': 'kith:entry', '@type': '@json' },
  salt: 'kith:salt',
  tlog_proof: 'kith:tlog_proof',
  verifier_key: 'kith:verifier_key',
  jws: 'kith:jws',
}

/**
 * DPV publishes its vocabulary but no context. So each receipt contains its context: the prefixes of DPV, and the types
 * of values.
 */
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

/** The names that a receipt shows besides the entry, and the text that the person answered. */
export type ReceiptNames = {
  consent_type: { key: string; name: string; description: string | null }
  text: { version: number; language: string; text: string; url: string | null; created_at: string } | null
}

type ReceiptParts = {
  entry: LedgerEntry
  salt: Buffer
  /** The origin of the log, which is also the name of the key. */
  origin: string
  proof: Proof
  names: ReceiptNames
  /** The time at which the receipt is issued. */
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

/** Adds the signature. It covers the hash of each member, so that a verifier can name a changed member. */
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

/** The state of consent in the terms of DPV. A superseded answer did not follow the answer in force before it. */
function statusName({ state, pending, previous_state, superseded }: LedgerEntry): string {
  if (pending) return 'ConsentRequested'
  const changesGrant = previous_state === true && !superseded
  if (state) return changesGrant ? 'RenewedConsentGiven' : 'ConsentGiven'
  return changesGrant ? 'ConsentWithdrawn' : 'ConsentRefused'
}
