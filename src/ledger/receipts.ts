import { setTimeout } from 'node:timers/promises'
import { findPersonSql } from '../changes/people-sql.ts'
import type { Context } from '../db/context.ts'
import { currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { type Channel, channels, isChannel } from '../values/channels.ts'
import { refuse, refuseValues } from '../values/errors.ts'
import { buildReceipt, type ReceiptNames } from './build-receipt.ts'
import { leafData } from './entry.ts'
import { readLedgerSigner } from './keys.ts'
import { findEntry, proveInclusion, readOrigin, readStoredLedger, type StoredEntry, signCheckpoint } from './ledger.ts'
import type { Receipt } from './receipt.ts'
import type { LedgerEntry, ReceiptQuery } from './schema.ts'
import { entryOf, readAnswersOf } from './seal.ts'
import { findAnswerSql, readTextSql } from './sql.ts'
import { GrowingTree } from './tree.ts'

/** An answer is sealed within a second. A request waits longer if the process that seals has just ended. */
const maxWaitMs = 4_000
const pollMs = 50

type ReceiptCall = Call<ReceiptQuery>

/** Answers with the receipt of an answer. `originName` begins the origin of the ledger. Throws a Fault of 400, 404, 410 or 503. */
export async function answerReceipt(originName: string, call: ReceiptCall): Promise<HandlerResult> {
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
  const data = await issueReceipt(context, { originName, entry, sealed }, signal)
  call.shown.add(peopleStackId, person_id)
  return { status: 200, data }
}

function channelOf(text: string): Channel {
  if (isChannel(text)) return text
  return refuseValues({ path: '/channel', message: `must be ${channels.join(' or ')}` })
}

async function findPerson({ context: { db, organization_id }, params, signal }: ReceiptCall): Promise<string> {
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
async function waitForEntry(
  context: Context,
  answer: Pick<StoredEntry, 'sequence' | 'consent_type_id' | 'channel'>,
  signal: Signal,
): Promise<StoredEntry> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const entry = await findEntry(context, answer, signal)
    if (entry) return entry
    if (waitedMs >= maxWaitMs)
      refuse('operation_failed', 'The answer is stored, but not yet sealed in the ledger. Retry after 1 second.', {
        status: 503,
        headers: { 'Retry-After': '1' },
      })
    await setTimeout(pollMs)
  }
}

type SealedAnswer = { originName: string; entry: LedgerEntry; sealed: StoredEntry }

async function issueReceipt(
  context: Context,
  { originName, entry, sealed }: SealedAnswer,
  signal: Signal,
): Promise<Receipt> {
  const { index, salt, hash } = sealed
  if (salt === null)
    return refuse(
      'invalid_parameter',
      'The answer was erased. The ledger has only a hash of it, which tells nothing.',
      {
        status: 410,
      },
    )
  if (!leafData(salt, entry).equals(hash))
    return refuse(
      'operation_failed',
      'The stored answer is not the one that the ledger sealed, so there is no receipt of it. An administrator finds the ' +
        'difference with kith ledger verify.',
    )
  const [names, origin, signer, ledger] = await Promise.all([
    readNames(context, entry, signal),
    readOrigin(context, originName, signal),
    readLedgerSigner(context.db, signal),
    readStoredLedger(context, signal),
  ])
  const { hashes } = await proveInclusion(context, { ledger: ledger!, index }, signal)
  // The stored checkpoint may be older than the key. The current key signs the same tree, so that one key verifies all.
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
