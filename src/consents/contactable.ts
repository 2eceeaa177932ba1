import { findFirstBearer, readSequenceAt } from '../changes/read-changes.ts'
import { baseUrlOf, expiryOf, type LinkSettings, prepareLinks } from '../consent-links/consent-links.ts'
import type { LinkKind } from '../consent-links/token.ts'
import type { Reading } from '../db/context.ts'
import { currentDefinitions, peopleStackId } from '../organizations/definitions.ts'
import type { Operation } from '../organizations/logged-changes.ts'
import { definitionsAfter, readDefinitionChanges } from '../organizations/past-definitions.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import type { Call } from '../route/call.ts'
import { listResult } from '../route/list-result.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { channelTable } from '../values/channels.ts'
import { throwBrokenRule } from '../values/errors.ts'
import { pastTimeOf } from '../values/instant.ts'
import { mobileKey } from '../values/phone-numbers.ts'
import { answerKey, configuredFor } from './answers.ts'
import {
  type AnswerOfAddress,
  type Contact,
  type ContactDecision,
  type DecisionFacts,
  decideContact,
  type SuppressedBy,
} from './contact-decision.ts'
import { readContactFacts, readPastContactFacts } from './contactable-sql.ts'
import { type AnswerRow, recordedAnswer, throwNoPerson } from './history.ts'
import type { ContactableBody, ContactableManyBody, ContactLinks } from './schema.ts'

/**
 * The consent type of a decision, whose state is null if it does not exist, and the facts about the addresses of the
 * people.
 */
type FoundPurpose = ((DecisionFacts['purpose'] & { has_channel: boolean }) | { state: null }) & {
  head: number
  text_sha256: Record<string, string> | null
  suppressed: Record<string, SuppressedBy> | null
  refused: Record<string, AnswerOfAddress> | null
}

/**
 * A row of a person, of a person's deletion or erasure, or of neither, with the answer in force. `purpose` is null
 * except in the row of the first name.
 */
type FactsRow = {
  name: string
  purpose: FoundPurpose | null
  person_id: string | null
  address: string | null
} & (
  | { gone_sequence: number; gone_at: string; is_erased: boolean }
  | { gone_sequence: null; gone_at: null; is_erased: null }
) &
  (Omit<AnswerRow, 'person_id' | 'consent_type_id' | 'channel' | 'superseded' | 'text_sha256'> | { version: null })

/**
 * Responds whether one person may be written to, now or at a time. Throws a Fault of 400 or 404, and with `links` of
 * 403.
 */
export async function answerContactable(call: Call<ContactableBody>, config: LinkSettings): Promise<HandlerResult> {
  const { at, links } = call.body
  if (at !== undefined && links) throwBrokenRule('/links', 'cannot be combined with at')
  if (at !== undefined) return { status: 200, data: await decideAt(call, pastTimeOf(at)) }
  const addLinks = await prepareContactLinks(call, config)
  const { by, identifier } = personOf(call.params)
  const { rows, decide, sequence } = await readFacts(call, by, [identifier])
  const [row] = rows as [FactsRow]
  if (row.person_id === null && row.gone_sequence === null) throwNoPerson()
  return { status: 200, data: { ...addLinks(decide(row), row), sequence } }
}

/** Responds which people may be written to. Throws a Fault of 400, and with `links` of 403. */
export async function answerContactableMany(
  call: Call<ContactableManyBody>,
  config: LinkSettings,
): Promise<HandlerResult> {
  const { external_ids } = call.body
  const addLinks = await prepareContactLinks(call, config)
  const { rows, decide, sequence } = await readFacts(call, 'external_id', external_ids)
  await yieldIfDue()
  const byName = new Map(rows.map(row => [row.name, row]))
  const itemOf = (external_id: string) => {
    const row = byName.get(external_id)!
    return { external_id, ...addLinks(decide(row), row) }
  }
  return listResult(external_ids, itemOf, `"sequence":${sequence}`)
}

/** Reads the facts of decisions about people, in any order, and records the people for the access log. */
async function readFacts(
  { context, body: { consent_type_id, channel }, shown, signal }: Call<ContactableBody | ContactableManyBody>,
  by: 'id' | 'external_id',
  identifiers: readonly string[],
) {
  const { db, organization_id } = context
  const values = [organization_id, identifiers, consent_type_id, channel, answerKey(consent_type_id, channel)]
  const rows = await db.query<FactsRow>(readContactFacts[by], values, signal)
  const found = rows.find(({ purpose }) => purpose !== null)!.purpose!
  if (found.state === null) throwBrokenRule('/consent_type_id', 'is not a consent type of the organization')
  if (!found.has_channel) throwBrokenRule('/channel', 'is a channel that the consent type is not configured for')
  shown.addAll(
    peopleStackId,
    rows.flatMap(({ person_id }) => person_id ?? []),
  )
  const [suppressed, refused] = [mapOf(found.suppressed), mapOf(found.refused)]
  const contactOf = (row: FactsRow): Contact | undefined => {
    if (row.person_id !== null) return { address: row.address, suppression: suppressed.get(row.address) }
    return row.gone_sequence === null ? undefined : { gone: goneBy(row.is_erased, row.gone_sequence, row.gone_at) }
  }
  const answerOf = (row: FactsRow) => {
    if (row.version === null) return undefined
    const text_sha256 = found.text_sha256?.[row.evidence?.text_version ?? 0] ?? null
    return recordedAnswer({ ...row, consent_type_id, channel, superseded: false, text_sha256 })
  }
  const decide = (row: FactsRow) =>
    decideContact({
      person: contactOf(row),
      purpose: found,
      answer: answerOf(row),
      addressAnswer: refused.get(row.address),
    })
  return { rows, decide, sequence: found.head }
}

const mapOf = <T>(byAddress: Record<string, T> | null) => new Map<string | null, T>(Object.entries(byAddress ?? {}))

const goneBy = (isErased: boolean, sequence: number, at: string) => ({
  rule: isErased ? ('erased' as const) : ('deleted' as const),
  sequence,
  at,
})

/** `operation` is null if the person did not exist yet. */
type PastFactsRow = {
  merged_into: string | null
  is_blanked: boolean
  address: string | null
  prefix: string | null
} & (
  | {
      operation: Operation
      gone_sequence: number
      gone_at: string
    }
  | { operation: null; gone_sequence: null; gone_at: null }
) &
  (AnswerRow | { version: null })

/**
 * Decides as of a time, RFC 3339 in UTC, by the state of the person, the consent type and the answers in kith at that
 * time.
 */
async function decideAt(
  { context, params, body: { consent_type_id, channel }, signal }: Call<ContactableBody>,
  at: string,
): Promise<ContactDecision & { sequence: number }> {
  const { db, organization_id } = context
  const reader: Reading['db'] = { query: (statement, values) => db.query(statement, values, signal) }
  const reading: Reading = { db: reader, organization_id }
  const sequence = await readSequenceAt(reading, at)
  const readPastFacts = async (by: 'id' | 'external_id', identifier: string) => {
    const values = [organization_id, identifier, consent_type_id, channel, sequence, channelTable[channel].address]
    const [row] = await reader.query<PastFactsRow>(readPastContactFacts[by], values)
    return row!
  }
  const { by, identifier } = personOf(params)
  let row = await readPastFacts(by, identifier)
  const first = row.operation === null && by === 'external_id' && (await findFirstBearer(reading, identifier))
  if (first) row = await readPastFacts('id', first)
  while (row.merged_into !== null) row = await readPastFacts('id', row.merged_into)
  const { operation, gone_sequence, gone_at, is_blanked, prefix } = row
  const isGone = operation === 'delete' || operation === 'erase'
  // The log of an erased person has no values.
  if (operation === null || operation === 'merge' || (operation !== 'erase' && is_blanked)) return throwNoPerson()
  const current = await currentDefinitions(context, signal)
  const address =
    channelTable[channel].key === 'mobile_key' ? mobileKey(prefix, row.address, current.default_country) : row.address
  const later = await readDefinitionChanges(reading, sequence)
  const { consent_types } = definitionsAfter(current, sequence, later)
  const purpose = consent_types.find(type => type.id === consent_type_id)
  if (!purpose) throwBrokenRule('/consent_type_id', 'was not a consent type of the organization at that time')
  if (!configuredFor(purpose, channel))
    throwBrokenRule('/channel', 'is a channel that the consent type was not configured for at that time')
  const person = isGone ? { gone: goneBy(operation === 'erase', gone_sequence, gone_at) } : { address }
  const answer = row.version === null ? undefined : recordedAnswer(row)
  // kith stores no past states of address answers.
  return { ...decideContact({ person, purpose, answer, addressAnswer: undefined }), sequence }
}

/** Adds links to a decision. The person is null if it does not exist. */
type AddLinks = (
  decision: ContactDecision,
  person: Pick<FactsRow, 'person_id' | 'address'>,
) => ContactDecision & ContactLinks

/** The rules by which no message may be sent at all, not even one that asks for a confirmation. */
const unreachable: ReadonlySet<string> = new Set(['no_address', 'suppressed', 'archived'])

/**
 * Prepares the links of decisions, if the request asks for them. Throws a Fault of 403 if the token may not make links,
 * or of 500 if kith does not know its own address.
 */
async function prepareContactLinks(
  { context, caller, body, signal, localUrl }: Call<ContactableBody | ContactableManyBody>,
  config: LinkSettings,
): Promise<AddLinks> {
  if (!body.links) return decision => decision
  requireScope(caller, 'people:write', ', which makes links')
  const { consent_type_id, channel } = body
  const printLink = await prepareLinks(context, baseUrlOf(localUrl(), config), signal)
  const nowMs = Date.now()
  return (decision, { person_id, address }) => {
    const kind = linkKindOf(decision)
    if (person_id === null || kind === undefined) return decision
    const url = printLink({ kind, person_id, consent_type_id, channel, address, expiresAt: expiryOf(kind, nowMs) })
    return { ...decision, [kind === 'confirm' ? 'confirm_url' : 'one_click_url']: url }
  }
}

/** The link that a message to the person carries. A mandatory purpose cannot be refused. */
function linkKindOf({ allowed, reasons }: ContactDecision): LinkKind | undefined {
  if (allowed) return reasons.some(({ rule }) => rule === 'mandatory') ? undefined : 'unsubscribe'
  const isPending = reasons.some(reason => reason.rule === 'answer' && reason.pending)
  return isPending && !reasons.some(({ rule }) => unreachable.has(rule)) ? 'confirm' : undefined
}
