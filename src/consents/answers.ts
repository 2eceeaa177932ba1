import type { Detail } from '../errors.ts'
import { pointer } from '../errors.ts'
import { type Channel, type ConsentType, channels } from '../organizations/definitions.ts'

/** The current answers of a person as stored in the row, by `<consent type id>:<channel>`. */
export type Answers = Record<string, { state: boolean; answered_at: string }>

/** An answer of a request: grants or refuses one purpose on one channel. */
export type ConsentAssignment = { consent_type_id: number; channel: Channel; state: boolean }

/** The fields of a person's body that answer purposes. */
export type ConsentBody = {
  email_consent?: boolean | null
  sms_consent?: boolean | null
  consents?: ConsentAssignment[] | null
}

/** An answer given by a write, with the state that it replaces. */
export type Answer = ConsentAssignment & { previous_state: boolean | null; source: 'entry' | 'flag' }

export type SummaryFlag = 'email_consent' | 'sms_consent'
/** The summary flag of each channel. */
export const summaryFlags: Record<Channel, SummaryFlag> = { email: 'email_consent', sms: 'sms_consent' }

/** The answers of a body's consent fields. A flag is in `standaloneFlags` if its channel has no purpose to answer. */
export type ExpandedAnswers = {
  answers: Answer[]
  standaloneFlags: Partial<Record<SummaryFlag, boolean>>
  faults: Detail[]
}

const answerKey = (consent_type_id: number, channel: Channel) => `${consent_type_id}:${channel}`

const configuredFor = (type: ConsentType, channel: Channel) => type.channels.find(entry => entry.channel === channel)

const canBeAnswered = (type: ConsentType, channel: Channel) =>
  type.state === 'active' && !type.mandatory && configuredFor(type, channel) !== undefined

/** Whether a body answers any consent. Most writes do not and skip the rest. */
export function hasAnswers(body: ConsentBody): boolean {
  return (
    typeof body.email_consent === 'boolean' || typeof body.sms_consent === 'boolean' || Boolean(body.consents?.length)
  )
}

/**
 * Expands the flags and entries of one body to one answer per type and channel. Entries override flags. A fault has the
 * JSON Pointer of the wrong value. If there is a fault, the caller must not use the answers and flags.
 */
export function expandAnswers(body: ConsentBody, current: Answers, types: readonly ConsentType[]): ExpandedAnswers {
  const result: ExpandedAnswers = { answers: [], standaloneFlags: {}, faults: [] }
  const answers = new Map<string, Answer>()
  const addAnswer = (assignment: ConsentAssignment, source: Answer['source']) => {
    const key = answerKey(assignment.consent_type_id, assignment.channel)
    answers.set(key, { ...assignment, previous_state: current[key]?.state ?? null, source })
  }
  for (const channel of channels) {
    const flag = body[summaryFlags[channel]]
    if (typeof flag === 'boolean') applyFlag(channel, flag, types, addAnswer, result)
  }
  for (const fault of entryFaults(body.consents ?? [], types)) result.faults.push(fault)
  for (const { consent_type_id, channel, state } of body.consents ?? [])
    addAnswer({ consent_type_id, channel, state }, 'entry')
  result.answers = [...answers.values()]
  return result
}

type AddAnswer = (assignment: ConsentAssignment, source: Answer['source']) => void

function applyFlag(
  channel: Channel,
  state: boolean,
  types: readonly ConsentType[],
  addAnswer: AddAnswer,
  result: ExpandedAnswers,
) {
  const flag = summaryFlags[channel]
  const answerable = types.filter(type => canBeAnswered(type, channel))
  if (!state) {
    for (const type of answerable) addAnswer({ consent_type_id: type.id, channel, state }, 'flag')
    // Without a purpose to refuse, the flag itself is stored, so that the refusal is not lost.
    if (answerable.length === 0) result.standaloneFlags[flag] = false
    return
  }
  const defaultType = answerable.find(type => configuredFor(type, channel)?.is_default)
  if (defaultType) addAnswer({ consent_type_id: defaultType.id, channel, state }, 'flag')
  else result.faults.push({ path: pointer(flag), message: `no consent type is the default of the channel ${channel}` })
}

function entryFaults(entries: ConsentAssignment[], types: readonly ConsentType[]): Detail[] {
  const seen = new Set<string>()
  return entries.flatMap((entry, index) => {
    const fault = entryFault(entry, types) ?? repetitionFault(entry, seen)
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

function repetitionFault({ consent_type_id, channel }: ConsentAssignment, seen: Set<string>): EntryFault {
  const key = answerKey(consent_type_id, channel)
  if (seen.has(key))
    return { field: 'consent_type_id', message: 'repeats a consent type and channel of an earlier entry' }
  seen.add(key)
  return undefined
}

/** Lists the current answers in order of type and channel. */
export function currentAnswers(current: Answers): ConsentAssignment[] {
  return Object.entries(current)
    .map(([key, { state }]) => {
      const [consent_type_id, channel] = key.split(':') as [string, Channel]
      return { consent_type_id: Number(consent_type_id), channel, state }
    })
    .sort((a, b) => a.consent_type_id - b.consent_type_id || channels.indexOf(a.channel) - channels.indexOf(b.channel))
}

/** The current answers, updated with new ones given at `answered_at`. */
export function withAnswers(current: Answers, answers: Answer[], answered_at: string): Answers {
  const next = { ...current }
  for (const { consent_type_id, channel, state } of answers)
    next[answerKey(consent_type_id, channel)] = { state, answered_at }
  return next
}

/**
 * The summary flag of a channel. It is true if an active, non-mandatory type of the channel has a stored grant, false if the
 * channel has stored answers but no such grant, and null if it has no answers.
 */
export function summaryFlag(channel: Channel, answers: Answers, types: readonly ConsentType[]): boolean | null {
  const granted = types.some(type => canBeAnswered(type, channel) && answers[answerKey(type.id, channel)]?.state)
  if (granted) return true
  return Object.keys(answers).some(key => key.endsWith(`:${channel}`)) ? false : null
}

/** The state of one purpose on one channel, and where the state comes from. */
export type EffectiveConsent = {
  consent_type_id: number
  channel: Channel
  state: boolean
  source: 'answer' | 'default' | 'mandatory'
  answered_at: string | null
}

/**
 * The consents of a person without answers: one per active type and configured channel, in order of type and channel. An
 * answer under `answerKey` in {@link Answers} replaces the state. The key of a mandatory type is null.
 */
export function consentDefaults(
  types: readonly ConsentType[],
): { answerKey: string | null; consent: EffectiveConsent }[] {
  return types
    .filter(type => type.state === 'active')
    .flatMap(type => channels.filter(channel => configuredFor(type, channel)).map(channel => defaultOf(type, channel)))
}

function defaultOf(type: ConsentType, channel: Channel): { answerKey: string | null; consent: EffectiveConsent } {
  const purpose = { consent_type_id: type.id, channel }
  if (type.mandatory)
    return { answerKey: null, consent: { ...purpose, state: true, source: 'mandatory', answered_at: null } }
  const consent = { ...purpose, state: type.default_state, source: 'default' as const, answered_at: null }
  return { answerKey: answerKey(type.id, channel), consent }
}
