import { pastTimeOf } from '../attributes/instant.ts'
import { findFirstBearer, readSequenceAt } from '../changes/read-changes.ts'
import { createValueRefusal, Fault } from '../errors.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { type Channel, type ConsentType, currentDefinitions, definitionsAt } from '../organizations/definitions.ts'
import { definitionsAfter, readDefinitionChanges } from '../organizations/past-definitions.ts'
import { type ContactDecision, decideContact } from './contact-decision.ts'
import { readContactFacts, readContactFactsByAnyIdentifier, readPastContactFacts } from './contactable-sql.ts'
import { addressOf, throwNoPerson } from './history.ts'
import { type AnswerRow, recordedAnswer } from './recorded-answers.ts'
import type { ContactableBody, ContactableManyBody } from './schema.ts'

/** The answer of a row of facts, if there is one. */
type StandingAnswer = AnswerRow | { version: null }

type Purpose = Pick<ConsentType, 'state' | 'mandatory' | 'default_state'>

/** The columns of the consent type are null if it does not exist. */
type FactsRow = {
  head: number
  schema_version: number
  purpose_state: Purpose['state'] | null
  mandatory: boolean
  default_state: boolean
  has_channel: boolean
  is_present: boolean
  address: string | null
  gone_sequence: number | null
  gone_at: string
  is_erased: boolean
} & StandingAnswer

/** Answers whether one person may be written to, now or at a time. Throws a Fault of 400 or 404. */
export async function answerContactable(call: Call<ContactableBody>): Promise<HandlerResult> {
  if (call.body.at !== undefined) return { status: 200, data: await decideAt(call, pastTimeOf(call.body.at)) }
  const { by, identifier } = addressOf(call.params)
  const [row] = await readFacts(call, by, by === 'id' ? identifier : [identifier])
  const { head, is_present, gone_sequence } = row!
  if (!is_present && gone_sequence === null) throwNoPerson()
  return { status: 200, data: { ...decide(row!, purposeOf(row!)), sequence: head } }
}

/** Answers which people may be written to. Throws a Fault of 400. */
export async function answerContactableMany(call: Call<ContactableManyBody>): Promise<HandlerResult> {
  const { external_ids } = call.body
  const rows = await readFacts(call, 'external_id', external_ids)
  const purpose = purposeOf(rows[0]!)
  const items = rows.map((row, index) => ({ external_id: external_ids[index]!, ...decide(row, purpose) }))
  return { status: 200, data: { items, sequence: rows[0]!.head } }
}

/**
 * Reads the facts about people from one snapshot. A second statement reads all of them again if the organization has aliases and an
 * identifier is nobody's own.
 */
async function readFacts(
  { db, caller, body, signal }: Call<ContactableBody | ContactableManyBody>,
  by: 'id' | 'external_id',
  asked: string | string[],
): Promise<FactsRow[]> {
  const organization_id = caller.organization.id
  const values = [organization_id, asked, body.consent_type_id, body.channel]
  const rows = await db.query<FactsRow>(readContactFacts[by], values, signal)
  if (rows.every(({ is_present }) => is_present)) return rows
  const { has_aliases } = await definitionsAt(db, organization_id, rows[0]!.schema_version, signal)
  return has_aliases ? db.query<FactsRow>(readContactFactsByAnyIdentifier[by], values, signal) : rows
}

/** Throws a Fault of 400 if the consent type does not exist or does not have the channel. */
function purposeOf({ purpose_state, mandatory, default_state, has_channel }: FactsRow): Purpose {
  if (purpose_state === null) throwWrong('/consent_type_id', 'is not a consent type of the organization')
  if (!has_channel) throwWrong('/channel', 'is a channel that the consent type is not configured for')
  return { state: purpose_state, mandatory, default_state }
}

function decide(row: FactsRow, purpose: Purpose): ContactDecision {
  const { is_present, address, gone_sequence, gone_at, is_erased } = row
  const gone = gone_sequence === null ? undefined : { gone: goneBy(is_erased, gone_sequence, gone_at) }
  return decideContact({ person: is_present ? { address } : gone, purpose, answer: answerOf(row) })
}

const goneBy = (isErased: boolean, sequence: number, at: string) => ({
  rule: isErased ? ('erased' as const) : ('deleted' as const),
  sequence,
  at,
})

const answerOf = (row: StandingAnswer) => (row.version === null ? undefined : recordedAnswer(row))

/** `operation` is null if the person did not exist yet. */
type PastFactsRow = {
  operation: 'create' | 'update' | 'restore' | 'delete' | 'merge' | 'erase' | null
  merged_into: string | null
  gone_sequence: number
  gone_at: string
  is_blanked: boolean
  address: string | null
} & StandingAnswer

/** The fields of a person that are the address on a channel. */
const addressFields = { email: 'email', sms: 'mobile_number' } as const satisfies Record<Channel, string>

/** Decides as at a time, RFC 3339 in UTC: by the person, the consent type and the answers that kith had then. */
async function decideAt(
  { db, caller, params, body: { consent_type_id, channel }, signal }: Call<ContactableBody>,
  at: string,
): Promise<ContactDecision & { sequence: number }> {
  const organization_id = caller.organization.id
  const reader: Parameters<typeof readSequenceAt>[0] = {
    query: (statement, values) => db.query(statement, values, signal),
  }
  const sequence = await readSequenceAt(reader, organization_id, at)
  const readFacts = async (by: 'id' | 'external_id', identifier: string) => {
    const values = [organization_id, identifier, consent_type_id, channel, sequence, addressFields[channel]]
    const [row] = await reader.query<PastFactsRow>(readPastContactFacts[by], values)
    return row!
  }
  const { by, identifier } = addressOf(params)
  let row = await readFacts(by, identifier)
  const first =
    row.operation === null && by === 'external_id' && (await findFirstBearer(reader, organization_id, identifier))
  if (first) row = await readFacts('id', first)
  while (row.merged_into !== null) row = await readFacts('id', row.merged_into)
  const { operation, gone_sequence, gone_at, is_blanked, address } = row
  const isGone = operation === 'delete' || operation === 'erase'
  // The log of an erased person has no values.
  if (operation === null || operation === 'merge' || (operation !== 'erase' && is_blanked)) throwNoPerson()
  const current = await currentDefinitions(db, organization_id, signal)
  const later = await readDefinitionChanges(reader, organization_id, sequence)
  const { consent_types } = definitionsAfter(current, sequence, later)
  const purpose = consent_types.find(type => type.id === consent_type_id)
  if (!purpose) throwWrong('/consent_type_id', 'was not a consent type of the organization at that time')
  if (!purpose.channels.some(configured => configured.channel === channel))
    throwWrong('/channel', 'is a channel that the consent type was not configured for at that time')
  const person = isGone ? { gone: goneBy(operation === 'erase', gone_sequence, gone_at) } : { address }
  return { ...decideContact({ person, purpose, answer: answerOf(row) }), sequence }
}

function throwWrong(path: string, message: string): never {
  throw new Fault(createValueRefusal(path, message))
}
