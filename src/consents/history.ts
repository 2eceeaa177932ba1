import { peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { refuse } from '../values/errors.ts'
import { type AnswerRow, recordedAnswer } from './recorded-answers.ts'
import { readConsentHistory } from './recorded-answers-sql.ts'
import { type ConsentHistoryQuery, defaultHistoryLimit } from './schema.ts'

/** A page ends after the change with which its evidence reaches this size. */
const maxPageBytes = 1_048_576
/** Higher than every version. */
const noVersion = 2_147_483_647

type Row = { found_id: string | null } & (({ has_next: boolean } & AnswerRow) | { version: null })

/** Answers with the consent answers of one person, newest first. Throws a Fault of 404. */
export async function answerConsentHistory(call: Call<ConsentHistoryQuery>): Promise<HandlerResult> {
  const {
    context: { db },
    caller,
    body,
    params,
    signal,
  } = call
  const { before_version = noVersion, consent_type_id, channel, limit = defaultHistoryLimit } = body
  const { by, identifier } = personOf(params)
  const values = [
    caller.organization.id,
    identifier,
    before_version,
    consent_type_id ?? null,
    channel ?? null,
    limit,
    maxPageBytes,
  ]
  const rows = await db.query<Row>(readConsentHistory[by], values, signal)
  call.shown.add(peopleStackId, rows[0]!.found_id ?? throwNoPerson())
  const answers = rows.filter(row => row.version !== null)
  const has_more = answers.length > 0 && answers.every(({ has_next }) => has_next)
  return { status: 200, data: { items: answers.map(recordedAnswer), has_more } }
}

/** Throws a Fault of 404. */
export const throwNoPerson = (): never => refuse('not_found', 'There is no such person.')
