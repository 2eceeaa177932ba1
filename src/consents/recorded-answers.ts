import type { Channel } from '../channels.ts'
import type { Evidence } from './evidence.ts'

/** A row of the consent history, with the number of its change and the hash of its text. */
export type AnswerRow = {
  person_id: string
  /** The person who was merged and gave the answer. Null for the person's own. */
  merged_person_id?: string | null
  sequence: number
  version: number
  at: string
  consent_type_id: number
  channel: Channel
  state: boolean
  previous_state: boolean | null
  superseded: boolean
  pending: boolean
  undated: boolean
  collected_at: string | null
  evidence: Evidence | null
  text_sha256: string | null
  actor: string
  request_id: string
}

/** An answer as reads show it. A member that was not given is null. */
export type RecordedAnswer = Omit<AnswerRow, 'person_id' | 'evidence' | 'undated' | 'merged_person_id'> & {
  [Name in keyof Evidence]-?: Evidence[Name] | null
} & { undated?: true; merged_person_id?: string }

/** The answer of a row, which may have other columns. */
export function recordedAnswer(row: Omit<AnswerRow, 'person_id'>): RecordedAnswer {
  const { method, source, ip, user_agent, text_version, reference } = row.evidence ?? {}
  return {
    sequence: row.sequence,
    version: row.version,
    at: row.at,
    consent_type_id: row.consent_type_id,
    channel: row.channel,
    state: row.state,
    previous_state: row.previous_state,
    superseded: row.superseded,
    pending: row.pending,
    collected_at: row.collected_at,
    method: method ?? null,
    source: source ?? null,
    ip: ip ?? null,
    user_agent: user_agent ?? null,
    text_version: text_version ?? null,
    text_sha256: row.text_sha256,
    reference: reference ?? null,
    actor: row.actor,
    request_id: row.request_id,
    ...(row.undated && { undated: true as const }),
    ...(row.merged_person_id && { merged_person_id: row.merged_person_id }),
  }
}
