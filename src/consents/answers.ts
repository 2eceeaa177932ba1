import type { Detail } from '../errors.ts'
import { pointer } from '../errors.ts'
import { type Channel, type ConsentType, channels } from '../organizations/definitions.ts'

/** The current answers of a person as its row holds them, by `<consent type id>:<channel>`. */
export type Answers = Record<string, { state: boolean; answered_at: string }>

export type ConsentAssignment = { consent_type_id: number; channel: Channel; state: boolean }

/** The part of a person's body that answers purposes. */
export type ConsentBody = {
  email_consent?: boolean | null
  sms_consent?: boolean | null
  consents?: ConsentAssignment[] | null
}

/** One answer given by a write, beside the one it replaces. */
export type Answer = ConsentAssignment & { previous_state: boolean | null; source: 'entry' | 'flag' }

export type SummaryFlag = 'email_consent' | 'sms_consent'
export const summaryFlags: Record<Channel, SummaryFlag> = { email: 'email_consent', sms: 'sms_consent' }

/** What a body's consent fields come to: the answers, and flags kept as themselves where nothing can be answered. */
export type Answering = { answers: Answer[]; bareFlags: Partial<Record<SummaryFlag, boolean>>; faults: Detail[] }

const answerKey = (consent_type_id: number, channel: Channel) => `${consent_type_id}:${channel}`

const configuredFor = (type: ConsentType, channel: Channel) => type.channels.find(entry => entry.channel === channel)

const canBeAnswered = (type: ConsentType, channel: Channel) =>
  type.state === 'active' && !type.mandatory && configuredFor(type, channel) !== undefined

/** Whether a body says anything about consents at all: most writes do not, and pay nothing. */
export function hasAnswers(body: ConsentBody): boolean {
  return (
    typeof body.email_consent === 'boolean' || typeof body.sms_consent === 'boolean' || Boolean(body.consents?.length)
  )
}

/**
 * Expands the flags and entries of one body: the flags first, then the entries, one answer per (type, channel).
 * Faults carry the JSON Pointer of the offending value; when there is one, nothing of the rest may be used.
 */
export function answering(body: ConsentBody, current: Answers, types: readonly ConsentType[]): Answering {
  const result: Answering = { answers: [], bareFlags: {}, faults: [] }
  const given = new Map<string, Answer>()
  const give = (assignment: ConsentAssignment, source: Answer['source']) => {
    const key = answerKey(assignment.consent_type_id, assignment.channel)
    given.set(key, { ...assignment, previous_state: current[key]?.state ?? null, source })
  }
  for (const channel of channels) {
    const flag = body[summaryFlags[channel]]
    if (typeof flag === 'boolean') applyFlag(channel, flag, types, give, result)
  }
  for (const fault of entryFaults(body.consents ?? [], types)) result.faults.push(fault)
  for (const { consent_type_id, channel, state } of body.consents ?? [])
    give({ consent_type_id, channel, state }, 'entry')
  result.answers = [...given.values()]
  return result
}

type Give = (assignment: ConsentAssignment, source: Answer['source']) => void

function applyFlag(channel: Channel, state: boolean, types: readonly ConsentType[], give: Give, result: Answering) {
  const flag = summaryFlags[channel]
  const answerable = types.filter(type => canBeAnswered(type, channel))
  if (!state) {
    for (const type of answerable) give({ consent_type_id: type.id, channel, state }, 'flag')
    // With no purpose to refuse, the refusal itself must not be lost.
    if (answerable.length === 0) result.bareFlags[flag] = false
    return
  }
  const byDefault = answerable.find(type => configuredFor(type, channel)?.is_default)
  if (byDefault) give({ consent_type_id: byDefault.id, channel, state }, 'flag')
  else result.faults.push({ path: pointer(flag), message: `no consent type is the default of the channel ${channel}` })
}

function entryFaults(entries: ConsentAssignment[], types: readonly ConsentType[]): Detail[] {
  const seen = new Set<string>()
  return entries.flatMap((entry, index) => {
    const fault = entryFault(entry, types) ?? repeated(entry, seen)
    return fault ? [{ path: pointer('consents', index, fault.field), message: fault.message }] : []
  })
}

type EntryFault = { field: string; message: string } | undefined

function entryFault({ consent_type_id, channel }: ConsentAssignment, types: readonly ConsentType[]): EntryFault {
  const type = types.find(candidate => candidate.id === consent_type_id)
  if (!type) return { field: 'consent_type_id', message: 'is not a consent type of the organization' }
  if (type.state === 'archived') return { field: 'consent_type_id', message: 'is an archived consent type' }
  if (type.mandatory)
    return { field: 'consent_type_id', message: 'is a mandatory consent type, which cannot be answered' }
  if (!configuredFor(type, channel))
    return { field: 'channel', message: 'is a channel that the consent type is not configured for' }
  return undefined
}

function repeated({ consent_type_id, channel }: ConsentAssignment, seen: Set<string>): EntryFault {
  const key = answerKey(consent_type_id, channel)
  if (seen.has(key)) return { field: 'consent_type_id', message: 'answers a consent type and channel given before' }
  seen.add(key)
  return undefined
}

/** The current answers, in order of type and channel. */
export function currentAnswers(current: Answers): ConsentAssignment[] {
  return Object.entries(current)
    .map(([key, { state }]) => {
      const [consent_type_id, channel] = key.split(':') as [string, Channel]
      return { consent_type_id: Number(consent_type_id), channel, state }
    })
    .sort((a, b) => a.consent_type_id - b.consent_type_id || channels.indexOf(a.channel) - channels.indexOf(b.channel))
}

/** The current answers after these were given at that time. */
export function withAnswers(current: Answers, answers: Answer[], answered_at: string): Answers {
  const next = { ...current }
  for (const { consent_type_id, channel, state } of answers)
    next[answerKey(consent_type_id, channel)] = { state, answered_at }
  return next
}

/**
 * The summary flag of a channel: true when an active, non-mandatory type of it has a stored grant, false when there
 * are stored answers on the channel and none is such a grant, null when nothing is answered.
 */
export function summaryFlag(channel: Channel, answers: Answers, types: readonly ConsentType[]): boolean | null {
  const granted = types.some(type => canBeAnswered(type, channel) && answers[answerKey(type.id, channel)]?.state)
  if (granted) return true
  return Object.keys(answers).some(key => key.endsWith(`:${channel}`)) ? false : null
}

export type EffectiveConsent = {
  consent_type_id: number
  channel: Channel
  state: boolean
  source: 'answer' | 'default' | 'mandatory'
  answered_at: string | null
}

/** One entry per active type and configured channel, in order of type and channel: what counts now, and why. */
export function effectiveConsents(answers: Answers, types: readonly ConsentType[]): EffectiveConsent[] {
  return types
    .filter(type => type.state === 'active')
    .flatMap(type =>
      channels.filter(channel => configuredFor(type, channel)).map(channel => effective(type, channel, answers)),
    )
}

function effective(type: ConsentType, channel: Channel, answers: Answers): EffectiveConsent {
  const subject = { consent_type_id: type.id, channel }
  if (type.mandatory) return { ...subject, state: true, source: 'mandatory', answered_at: null }
  const answer = answers[answerKey(type.id, channel)]
  if (!answer) return { ...subject, state: type.default_state, source: 'default', answered_at: null }
  return { ...subject, state: answer.state, source: 'answer', answered_at: answer.answered_at }
}

/** What is shown of a person who has answered nothing, and by which key an answer would stand; null where none counts. */
export function consentDefaults(
  types: readonly ConsentType[],
): { answerKey: string | null; shown: EffectiveConsent }[] {
  return effectiveConsents({}, types).map(shown => ({
    answerKey: shown.source === 'mandatory' ? null : answerKey(shown.consent_type_id, shown.channel),
    shown,
  }))
}
