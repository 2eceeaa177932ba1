import { methods } from '../../src/consents/schema.ts'
import type { Channel } from '../../src/values/channels.ts'

/** A purpose on a channel, as the organization of the test declares it. */
export type Purpose = {
  consent_type_id: number
  channel: Channel
  needsConfirmation: boolean
  defaultState: boolean
}

/** The purposes of the test. The first consent type is the default of both channels. */
export const purposes: Purpose[] = [
  { consent_type_id: 1, channel: 'email', needsConfirmation: false, defaultState: false },
  { consent_type_id: 1, channel: 'sms', needsConfirmation: false, defaultState: false },
  { consent_type_id: 2, channel: 'email', needsConfirmation: true, defaultState: false },
  { consent_type_id: 2, channel: 'sms', needsConfirmation: false, defaultState: false },
  { consent_type_id: 3, channel: 'email', needsConfirmation: false, defaultState: true },
]

/** An entry of `consents`. Times are in UTC with milliseconds, so that texts compare like times. */
export type Entry = {
  consent_type_id: number
  channel: Channel
  state: boolean
  collected_at?: string
  method?: 'web_form' | 'double_opt_in' | 'preference_page' | 'unsubscribe_link' | 'phone' | 'paper'
  source?: string
  ip?: string
  reference?: string
  text_version?: number
}

/** An answer as the model keeps it. `write` counts the writes of the test, and `time` orders answers without `collected_at`. */
export type Kept = Entry & {
  write: number
  time: string
  pending: boolean
  superseded: boolean
  previous_state: boolean | null
}

const isSame = (a: Pick<Entry, 'consent_type_id' | 'channel'>, b: Pick<Entry, 'consent_type_id' | 'channel'>) =>
  a.consent_type_id === b.consent_type_id && a.channel === b.channel

const rankOf = (method: Kept['method']) =>
  String(method ? methods.length - methods.indexOf(method) : 0).padStart(2, '0')

/** The latest answer stands. At equal times a refusal does, then a confirmed grant, then the greater text and method. */
const rank = ({ time, state, pending, text_version = 0, method }: Kept) =>
  [time, pending ? 0 : state ? 1 : 2, text_version, rankOf(method)].join(' ')

/** The answer to a purpose that stands after the answers so far. */
export const standingOf = (kept: Kept[], purpose: Pick<Entry, 'consent_type_id' | 'channel'>): Kept | undefined =>
  kept
    .filter(each => isSame(each, purpose))
    .reduce<Kept | undefined>((a, b) => (a && rank(a) > rank(b) ? a : b), undefined)

/** The effective state: the answer that stands, if it does not wait for its confirmation, else the default. */
export const stateOf = (kept: Kept[], purpose: Purpose): boolean => {
  const standing = standingOf(kept, purpose)
  return standing ? standing.state && !standing.pending : purpose.defaultState
}

/** Adds the entries of one write to the answers of a person. An import skips what it has already. */
export function keep(kept: Kept[], entries: Entry[], write: number, isImport: boolean): Kept[] {
  const added = entries.flatMap((entry): Kept[] => {
    const { needsConfirmation } = purposes.find(purpose => isSame(purpose, entry))!
    const standing = standingOf(kept, entry)
    const previous_state = standing ? standing.state && !standing.pending : null
    // A letter sorts after the digits of a year: an answer without a time was collected when it was written, which is
    // later. An import has no time of collection, so any other answer is later.
    const undated = isImport && entry.collected_at === undefined
    const time = undated ? '' : (entry.collected_at ?? `now ${String(write).padStart(9, '0')}`)
    const isRepeatedGrant = entry.collected_at === undefined && previous_state === true
    const pending = entry.state && needsConfirmation && entry.method !== 'double_opt_in' && !isRepeatedGrant
    const answer = { ...entry, write, time, pending, superseded: false, previous_state }
    answer.superseded =
      (undated || entry.collected_at !== undefined) && standing !== undefined && rank(answer) < rank(standing)
    return isImport && isRepeat(kept, answer, standing) ? [] : [answer]
  })
  return [...kept, ...added]
}

const evidenceOf = ({ method, source, ip, reference, text_version }: Entry) =>
  JSON.stringify([method, source, ip, reference, text_version])
const noEvidence = JSON.stringify([null, null, null, null, null])

function isRepeat(kept: Kept[], answer: Kept, standing: Kept | undefined): boolean {
  const isDated = answer.collected_at !== undefined
  const isUndated = answer.time === ''
  if (!isDated && !isUndated && answer.state !== standing?.state) return false
  if (!isDated && answer.state === standing?.state && evidenceOf(answer) === noEvidence)
    return answer.pending === standing?.pending
  return kept.some(
    each =>
      isSame(each, answer) &&
      each.state === answer.state &&
      evidenceOf(each) === evidenceOf(answer) &&
      ((!isDated && answer.state === standing?.state) || each.time === answer.time),
  )
}
