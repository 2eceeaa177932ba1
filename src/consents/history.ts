import { definitionsAt, peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import { refuse } from '../values/errors.ts'
import { type Answers, answerKey, effectiveConsents } from './answers.ts'

import { readConsentHistory, readConsentsInForce } from './recorded-answers-sql.ts'
import {
  type ConsentHistoryQuery,
  type ConsentInForce,
  defaultHistoryLimit,
  type Evidence,
  type RecordedAnswer,
  recordedAnswer as recordedAnswerSchema,
} from './schema.ts'

export const throwNoPerson = (): never => refuse('not_found', 'There is no such person.')

/** A row of the consent history, with the number of its change and the hash of its text. */
export type AnswerRow = Omit<RecordedAnswer, keyof Evidence | 'undated' | 'merged_person_id'> & {
  person_id: string
  /** The person who was merged and gave the answer. Null for the person's own. */
  merged_person_id?: string | null
  undated: boolean
  evidence: Evidence | null
}

const { required: members } = recordedAnswerSchema as unknown as { required: (keyof RecordedAnswer)[] }

/** The answer of a row, which may have other columns. A member that was not given is null. */
export function recordedAnswer({ undated, merged_person_id, ...row }: Omit<AnswerRow, 'person_id'>): RecordedAnswer {
  const given: Partial<RecordedAnswer> = { ...row, ...row.evidence }
  const answer: Record<string, unknown> = {}
  for (const name of members) answer[name] = given[name] ?? null
  return { ...(answer as RecordedAnswer), ...(undated && { undated }), ...(merged_person_id && { merged_person_id }) }
}

/** A page ends after the change with which its evidence reaches this size. */
const maxPageBytes = 1_048_576
/** Higher than every version. */
const noVersion = 2_147_483_647

type Row = { found_id: string | null } & (({ has_next: boolean } & AnswerRow) | { version: null })

/** The consent answers of one person, newest first. Throws a Fault of 404. */
export async function readHistory(call: Call<ConsentHistoryQuery>) {
  const { context, body, params, shown, signal } = call
  const { before_version = noVersion, consent_type_id = null, channel = null, limit = defaultHistoryLimit } = body
  const { by, identifier } = personOf(params)
  const values = [context.organization_id, identifier, before_version, consent_type_id, channel, limit, maxPageBytes]
  const rows = await context.db.query<Row>(readConsentHistory[by], values, signal)
  shown.add(peopleStackId, rows[0]!.found_id ?? throwNoPerson())
  const answers = rows.filter(row => row.version !== null)
  const has_more = answers.length > 0 && answers.every(({ has_next }) => has_next)
  return { items: answers.map(recordedAnswer), has_more }
}

type InForceRow = { schema_version: number; sequence: number; refused: string[] } & (
  | { id: string; answers: Answers }
  | { id: null; answers: null }
)

/** The consents of one person, and whether a refusal of the address overrides each of them. Throws a Fault of 404. */
export async function readInForce({ context, params, shown, signal }: Call) {
  const { by, identifier } = personOf(params)
  const [row] = await context.db.query<InForceRow>(
    readConsentsInForce[by],
    [context.organization_id, identifier],
    signal,
  )
  const { id, schema_version, sequence, answers, refused } = row!
  if (id === null) return throwNoPerson()
  shown.add(peopleStackId, id)
  const { consent_types } = await definitionsAt(context, schema_version, signal)
  const items = effectiveConsents(answers, consent_types).map((consent): ConsentInForce => {
    const { consent_type_id, channel, state, source } = consent
    const isRefused = state && source !== 'mandatory' && refused.includes(answerKey(consent_type_id, channel))
    return isRefused ? { ...consent, address_refused: true } : consent
  })
  return { items, sequence }
}
