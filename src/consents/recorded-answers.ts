import type { Evidence } from './evidence.ts'
import type { RecordedAnswer } from './schema.ts'

/** A row of the consent history, with the number of its change and the hash of its text. */
export type AnswerRow = Omit<RecordedAnswer, keyof Evidence | 'undated' | 'merged_person_id'> & {
  person_id: string
  /** The person who was merged and gave the answer. Null for the person's own. */
  merged_person_id?: string | null
  undated: boolean
  evidence: Evidence | null
}

/** The answer of a row, which may have other columns. */
export function recordedAnswer(row: Omit<AnswerRow, 'person_id'>): RecordedAnswer {
  const { method, source, ip, user_agent, text_version, reference, consent_string } = row.evidence ?? {}
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
    consent_string: consent_string ?? null,
    actor: row.actor,
    request_id: row.request_id,
    ...(row.undated && { undated: true as const }),
    ...(row.merged_person_id && { merged_person_id: row.merged_person_id }),
  }
}
