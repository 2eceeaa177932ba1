import ipaddr from 'ipaddr.js'
import type { ConsentType } from '../organizations/definitions.ts'
import { type Channel, channels, channelTable, type SummaryFlag } from '../values/channels.ts'
import type { Detail } from '../values/errors.ts'
import { pointer } from '../values/errors.ts'
import { sortableTime, utcTime } from '../values/instant.ts'
import { type EffectiveConsent, type Evidence, evidence as evidenceSchema, methods } from './schema.ts'

/**
 * An answer in force. `answered_at` is the time of its collection, in the format of `utcTime`. An answer of an import
 * without a time is `undated`, and its `answered_at` is when it was stored. A grant that waits for its confirmation has
 * the state false and is `pending`. `person_id` is set if a merged person gave it: the consent history has the answer
 * under that identifier.
 */
export type StandingAnswer = {
  state: boolean
  answered_at: string
  undated?: true
  pending?: true
  person_id?: string
} & Pick<Evidence, 'method' | 'text_version'>

/** The answers in force of a person as stored in the row, by `<consent type id>:<channel>`. */
export type Answers = Record<string, StandingAnswer>

/** A purpose on a channel. A person has at most one answer in force to it. */
export type Question = { consent_type_id: number; channel: Channel }

/** An answer of a request: grants or refuses one purpose on one channel. */
export type ConsentAssignment = Question & { state: boolean; collected_at?: string; undated?: true } & Evidence

/** The fields of a person's body that answer purposes. */
export type ConsentBody = { [Flag in SummaryFlag]?: boolean | null } & {
  /** At most one for each question. */
  consents?: ConsentAssignment[] | null
}

/** An answer given by a write, with the state before it. */
export type Answer = Question & {
  state: boolean
  previous_state: boolean | null
  source: 'entry' | 'flag'
  /**
   * When the answer was collected. Null: at the time of the write, or at an unknown time if the answer is `undated`.
   */
  collected_at: string | null
  undated: boolean
  /** True if the client gave `collected_at`. */
  isDated: boolean
  evidence: Evidence | null
  /** True for a grant that waits for its confirmation. */
  pending: boolean
  /** True if it was collected before the answer in force. It then changes no state. */
  superseded: boolean
  /** The answer as the row stores it, unless it is superseded. */
  stored: StandingAnswer
}

/** The key of a question in {@link Answers}. */
export const answerKey = (consent_type_id: number, channel: Channel) => `${consent_type_id}:${channel}`

/** The configuration of a purpose for a channel. Undefined if there is none. */
export const configuredFor = ({ channels }: Pick<ConsentType, 'channels'>, channel: Channel) =>
  channels.find(entry => entry.channel === channel)

/** Whether people can grant or refuse a purpose on a channel. */
export const canBeAnswered = (type: ConsentType, channel: Channel): boolean =>
  type.state === 'active' && !type.mandatory && configuredFor(type, channel) !== undefined

/** Whether a body answers any purpose. Most writes answer none and skip the rest. */
export function hasAnswers(body: ConsentBody): boolean {
  return (
    Boolean(body.consents?.length) || channels.some(channel => typeof body[channelTable[channel].flag] === 'boolean')
  )
}

/** The time of a body's answers without `collected_at`: `now`, or `unknown` if an import reads them from a file. */
export type TimeOfUndated = 'now' | 'unknown'

/**
 * Expands the flags and entries of one body, written at `at`, to one answer per type and channel. Entries override
 * flags. A flag is in `standaloneFlags` if its channel has no purpose to answer. A fault has the JSON Pointer of the
 * wrong value. If there is a fault, the caller must not use the answers and flags.
 */
export function expandAnswers(
  body: ConsentBody,
  current: Answers,
  types: readonly ConsentType[],
  at: string,
  timeOfUndated: TimeOfUndated = 'now',
) {
  const answers = new Map<string, Answer>()
  const standaloneFlags: Partial<Record<SummaryFlag, boolean>> = {}
  const faults: Detail[] = []
  const addAnswer = (assignment: ConsentAssignment, source: Answer['source']) => {
    const key = answerKey(assignment.consent_type_id, assignment.channel)
    const type = types.find(({ id }) => id === assignment.consent_type_id)!
    answers.set(key, { ...decideAnswer(assignment, current[key], type, { at, timeOfUndated }), source })
  }
  for (const channel of channels) {
    const { flag } = channelTable[channel]
    const state = body[flag]
    if (typeof state !== 'boolean') continue
    const answerable = types.filter(type => canBeAnswered(type, channel))
    const defaultType = answerable.find(type => configuredFor(type, channel)?.is_default)
    const answered = state ? [defaultType].filter(type => type !== undefined) : answerable
    for (const type of answered) addAnswer({ consent_type_id: type.id, channel, state }, 'flag')
    if (answered.length > 0) continue
    // Without a purpose to refuse, the flag itself is stored, so that the refusal is not lost.
    if (!state) standaloneFlags[flag] = false
    else faults.push({ path: pointer(flag), message: `no consent type is the default of the channel ${channel}` })
  }
  const entries = body.consents ?? []
  for (const [index, entry] of entries.entries()) {
    const fault = entryFault(entry, types) ?? flagFault(entry, answers)
    if (fault) faults.push({ path: pointer('consents', index, fault.field), message: fault.message })
  }
  if (faults.length > 0) return { answers: [], standaloneFlags, faults }
  for (const entry of entries) addAnswer(entry, 'entry')
  return { answers: [...answers.values()], standaloneFlags, faults }
}

/**
 * Orders an answer before or after the one in force. An answer that is given now, without `collected_at`, always comes
 * into force: its time is that of the write, or one millisecond after the answer in force if a client's clock was
 * ahead. An answer of an unknown time is undated.
 */
function decideAnswer(
  entry: ConsentAssignment,
  standing: StandingAnswer | undefined,
  type: ConsentType,
  { at, timeOfUndated }: { at: string; timeOfUndated: TimeOfUndated },
): Omit<Answer, 'source'> {
  const { consent_type_id, channel, state, method, text_version } = entry
  const given = collectionTimeOf(entry)
  const undated = given === undefined && (entry.undated === true || timeOfUndated === 'unknown')
  const isBehind =
    given === undefined && !undated && standing !== undefined && sortableTime(standing.answered_at) >= sortableTime(at)
  const collected_at = given ?? (isBehind ? nextMillisecond(standing.answered_at) : null)
  const needsConfirmation = configuredFor(type, channel)?.double_opt_in && method !== 'double_opt_in'
  // A client that synchronizes may repeat a grant. The repetition must not revoke the confirmed grant.
  const repeatsGrant = given === undefined && standing?.state === true
  const pending = Boolean(state && needsConfirmation && !repeatsGrant)
  const stored: StandingAnswer = { state: state && !pending, answered_at: collected_at ?? at }
  if (undated) stored.undated = true
  if (pending) stored.pending = true
  if (method !== undefined) stored.method = method
  if (text_version !== undefined) stored.text_version = text_version
  return {
    consent_type_id,
    channel,
    state,
    previous_state: standing?.state ?? null,
    collected_at,
    undated,
    isDated: given !== undefined,
    evidence: evidenceOf(entry),
    pending,
    superseded: (given !== undefined || undated) && standing !== undefined && compareAnswers(stored, standing) < 0,
    stored,
  }
}

const nextMillisecond = (time: string) => new Date(Date.parse(time) + 1).toISOString()

/** The time that the client gave, in the format of a row. */
const collectionTimeOf = ({ collected_at }: ConsentAssignment) =>
  collected_at === undefined ? undefined : utcTime(collected_at)

/** An answer with the number of its change, if it is stored. */
export type NumberedAnswer = StandingAnswer & { sequence?: number | undefined }

/**
 * The order of answers to one question, everywhere: positive if `one` prevails over `other`. The answer that was
 * collected later prevails. At equal times a refusal prevails over a grant, and a grant over one that waits for its
 * confirmation. Then the higher text version, the method that comes earlier in the list of methods, and the later
 * change decide. So the order of arrival decides only between answers that filters cannot tell apart. The unknown time
 * of an undated answer is before every other. Zero if the numbers of the changes would decide and one of them is
 * missing.
 */
export function compareAnswers(one: NumberedAnswer, other: NumberedAnswer): number {
  const [time, otherTime] = [timeOf(one), timeOf(other)]
  if (time !== otherTime) return time > otherTime ? 1 : -1
  return (
    strengthOf(one) - strengthOf(other) ||
    (one.text_version ?? 0) - (other.text_version ?? 0) ||
    methodRank(one) - methodRank(other) ||
    (one.sequence !== undefined && other.sequence !== undefined ? one.sequence - other.sequence : 0)
  )
}

const timeOf = ({ undated, answered_at }: StandingAnswer) => (undated ? '' : sortableTime(answered_at))
const strengthOf = ({ state, pending }: StandingAnswer) => (pending ? 0 : state ? 1 : 2)
/**
 * The rank of a method: the first one in the list of methods has the highest, and an answer without a method the
 * lowest.
 */
export const methodRank = ({ method }: Pick<StandingAnswer, 'method'>) =>
  method === undefined ? 0 : methods.length - methods.indexOf(method)

/** The maximum sizes of texts, in bytes of UTF-8. */
const maxTextBytes = { source: 2_048, user_agent: 2_048, consent_string: 8_192 } as const

const members = Object.keys(evidenceSchema.properties) as (keyof Evidence)[]

/** The given members of the evidence, with the address in its normal form. Null if none is given. */
function evidenceOf(entry: Evidence): Evidence | null {
  const given = members.filter(member => entry[member] !== undefined)
  if (given.length === 0) return null
  const evidence: Evidence = Object.fromEntries(given.map(member => [member, entry[member]]))
  if (evidence.ip !== undefined) evidence.ip = normalAddress(evidence.ip)
  return evidence
}

/** IPv6 as in RFC 5952. An IPv4-mapped address is its IPv4 address. */
function normalAddress(text: string): string {
  const address = ipaddr.process(text)
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString()
}

type EntryFault = { field: string; message: string } | undefined

function entryFault(entry: ConsentAssignment, types: readonly ConsentType[]): EntryFault {
  if (entry.undated && entry.collected_at !== undefined)
    return { field: 'undated', message: 'cannot be combined with collected_at' }
  const fault = questionFault(entry, types, 'is a mandatory consent type, which cannot be answered: leave it out')
  return fault ?? evidenceFault(entry, types.find(({ id }) => id === entry.consent_type_id)!.text_versions)
}

/**
 * The reason why no person can answer for a consent type, on the channel if there is one. `ifMandatory` completes
 * "consent_type_id …".
 */
export function questionFault(
  { consent_type_id, channel }: Pick<Question, 'consent_type_id'> & { channel?: Channel | undefined },
  types: readonly ConsentType[],
  ifMandatory: string,
): EntryFault {
  const field = 'consent_type_id'
  const type = types.find(({ id }) => id === consent_type_id)
  if (!type) return { field, message: 'is not a consent type of the organization' }
  if (type.state === 'archived') return { field, message: 'is an archived consent type' }
  if (type.mandatory) return { field, message: ifMandatory }
  if (channel === undefined || configuredFor(type, channel)) return undefined
  return { field: 'channel', message: 'is a channel that the consent type is not configured for' }
}

/** The fault of the evidence of an answer to a consent type that has this number of texts. */
function evidenceFault(entry: Evidence, textVersions: number): EntryFault {
  const { text_version } = entry
  if (text_version !== undefined && text_version > textVersions)
    return {
      field: 'text_version',
      message:
        textVersions === 0
          ? 'the consent type has no texts: add the text first'
          : `is not a text of the consent type: its versions are 1 to ${textVersions}`,
    }
  const texts = Object.keys(maxTextBytes) as (keyof typeof maxTextBytes)[]
  const field = texts.find(name => Buffer.byteLength(entry[name] ?? '') > maxTextBytes[name])
  return field && { field, message: `must be at most ${maxTextBytes[field]} bytes in UTF-8` }
}

/**
 * Refuses an entry that is older than the answer of a flag, such as a refusal. The entry overrides the flag, so the
 * answer would be lost.
 */
function flagFault(entry: ConsentAssignment, byFlag: ReadonlyMap<string, Answer>): EntryFault {
  const { consent_type_id, channel, collected_at } = entry
  if (collected_at === undefined || !byFlag.has(answerKey(consent_type_id, channel))) return undefined
  return {
    field: 'collected_at',
    message: `cannot be combined with ${channelTable[channel].flag}, which records an answer to the same purpose`,
  }
}

/**
 * The answers that an earlier import may have written. They are undated and would be superseded, or have a time or
 * evidence and would be superseded or equal to the answer in force. Without `collected_at` the time of an answer does
 * not matter, but an `undated` one is compared with undated ones only.
 */
export function possibleRepeats(
  body: ConsentBody,
  current: Answers,
  types: readonly ConsentType[],
  timeOfUndated: TimeOfUndated,
) {
  return expandAnswers(body, current, types, '', timeOfUndated).answers.flatMap(answer => {
    const { consent_type_id, channel, state, evidence } = answer
    const standing = current[answerKey(consent_type_id, channel)]
    if (!standing) return []
    const isSame = repeatsState(state, standing)
    const undated = (answer.undated && !isSame) || undefined
    const collected_at = answer.isDated ? answer.collected_at! : undefined
    if (!evidence && collected_at === undefined && !undated) return []
    const isNewer =
      collected_at === undefined ? !undated && !isSame : sortableTime(collected_at) > sortableTime(standing.answered_at)
    if (isNewer) return []
    const { person_id } = standing
    return [{ consent_type_id, channel, state, person_id, collected_at, undated, evidence: evidence ?? undefined }]
  })
}

const repeatsState = (state: boolean, standing: StandingAnswer) =>
  state === (standing.state || standing.pending === true)

/**
 * Whether an answer of an import adds nothing. An answer without evidence repeats the one in force if it has the same
 * state. `known` holds the keys of the answers that the history has.
 */
export function isRepeat(answer: Answer, current: Answers, known: ReadonlySet<string> | undefined): boolean {
  const key = answerKey(answer.consent_type_id, answer.channel)
  const standing = current[key]
  // An answer that is given now is later than an undated one.
  if (standing?.undated && !answer.undated && !answer.isDated) return false
  if (known?.has(key)) return true
  if (answer.evidence || answer.isDated) return false
  return standing !== undefined && standing.state === answer.stored.state && standing.pending === answer.stored.pending
}

/**
 * An answer in the change log: the state in effect, `pending` for a grant that waits for its confirmation, and
 * `answered_at` if it was not collected at the time of the change. `undated`: that time is unknown. `superseded` is the
 * answer that was collected too early to change the state.
 */
export type LoggedAnswer = Question & {
  state: boolean | null
  pending?: true
  answered_at?: string
  undated?: true
  superseded?: { state: boolean; answered_at: string; undated?: true }
}

/** Lists the current answers in order of type and channel. */
export function currentAnswers(current: Answers): LoggedAnswer[] {
  const answers = Object.entries(current).map(([key, answer]) => ({ key, ...answer }))
  return inOrder(answers).map(({ key, state, pending }) => ({ ...questionOf(key), state, ...(pending && { pending }) }))
}

/** The question of a key of {@link Answers}. */
export function questionOf(key: string): Question {
  const [consent_type_id, channel] = key.split(':') as [string, Channel]
  return { consent_type_id: Number(consent_type_id), channel }
}

/** Sorts items with keys of {@link Answers} by type and channel. */
export function inOrder<T extends { key: string }>(items: readonly T[]): T[] {
  const placeOf = ({ consent_type_id, channel }: Question) =>
    consent_type_id * channels.length + channels.indexOf(channel)
  return items.toSorted((a, b) => placeOf(questionOf(a.key)) - placeOf(questionOf(b.key)))
}

/** The current answers, updated with new ones that are not superseded. */
export function withAnswers(current: Answers, answers: Answer[]): Answers {
  const next = { ...current }
  for (const { consent_type_id, channel, superseded, stored } of answers)
    if (!superseded) next[answerKey(consent_type_id, channel)] = stored
  return next
}

/**
 * The summary flag of a channel. It is true if an active, non-mandatory type of the channel has a stored grant, false
 * if the channel has stored answers but no such grant, and null if it has no answers.
 */
export function summaryFlag(channel: Channel, answers: Answers, types: readonly ConsentType[]): boolean | null {
  const granted = types.some(type => canBeAnswered(type, channel) && answers[answerKey(type.id, channel)]?.state)
  if (granted) return true
  return Object.keys(answers).some(key => key.endsWith(`:${channel}`)) ? false : null
}

/**
 * The consents of a person without answers: one per active type and configured channel, in order of type and channel.
 * An answer under `answerKey` in {@link Answers} replaces the state. The key of a mandatory type is null.
 */
export function consentDefaults(
  types: readonly ConsentType[],
): { answerKey: string | null; consent: EffectiveConsent }[] {
  return types
    .filter(type => type.state === 'active')
    .flatMap(type => channels.filter(channel => configuredFor(type, channel)).map(channel => defaultOf(type, channel)))
}

/** The consents of a person with these answers, as {@link consentDefaults} orders them. */
export function effectiveConsents(answers: Answers, types: readonly ConsentType[]): EffectiveConsent[] {
  return consentDefaults(types).map(({ answerKey, consent }) => {
    const answer = answerKey === null ? undefined : answers[answerKey]
    if (!answer) return consent
    const { person_id, state, answered_at, ...evidence } = answer
    return { ...consent, state, source: 'answer', answered_at, ...evidence }
  })
}

function defaultOf(type: ConsentType, channel: Channel): { answerKey: string | null; consent: EffectiveConsent } {
  const purpose = { consent_type_id: type.id, channel }
  if (type.mandatory)
    return { answerKey: null, consent: { ...purpose, state: true, source: 'mandatory', answered_at: null } }
  const consent = { ...purpose, state: type.default_state, source: 'default' as const, answered_at: null }
  return { answerKey: answerKey(type.id, channel), consent }
}
