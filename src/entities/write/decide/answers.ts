import {
  type Answer,
  type Answers,
  answerKey,
  expandAnswers,
  hasAnswers,
  isRepeat,
  type LoggedAnswer,
  summaryFlag,
  withAnswers,
} from '../../../consents/answers.ts'
import type { Definitions } from '../../../organizations/definitions.ts'
import { channels, channelTable } from '../../../values/channels.ts'
import type { Detail } from '../../../values/errors.ts'
import type { Columns, EntityRow } from '../../entity-row.ts'
import { timeOfUndated, type Write } from '../../write-request.ts'

/** Changed fields and their values, in the format of a read. */
export type FieldValues = Record<string, unknown>
export type ConsentChange = { before: LoggedAnswer[]; after: LoggedAnswer[] }

/** The answers of imports that the history already has, by {@link answerKey}. */
export type KnownAnswers = ReadonlyMap<Write, ReadonlySet<string>>

/**
 * Decides the consent fields of a body. Returns the answers for the history and sets changed answers and flags in
 * `columns`. Faults are added to `faults`; then nothing is returned and `columns` does not change.
 */
export function decideAnswers(
  row: EntityRow | undefined,
  write: Write,
  {
    definitions: { consent_types },
    at,
    knownAnswers,
  }: { definitions: Definitions; at: string; knownAnswers: KnownAnswers },
  columns: Columns,
  faults: Detail[],
): { answers: Answer[]; consents?: ConsentChange } {
  if (!hasAnswers(write.body)) return { answers: [] }
  const current = row?.answers ?? {}
  const bodyAnswers = expandAnswers(write.body, current, consent_types, at, timeOfUndated(write))
  if (write.operation === 'import')
    bodyAnswers.answers = bodyAnswers.answers.filter(answer => !isRepeat(answer, current, knownAnswers.get(write)))
  faults.push(...bodyAnswers.faults)
  if (bodyAnswers.faults.length > 0) return { answers: [] }
  for (const channel of channels) {
    const flag = channelTable[channel].flag
    const flagValue = bodyAnswers.standaloneFlags[flag]
    if (flagValue !== undefined && flagValue !== (row?.[flag] ?? null)) columns[flag] = flagValue
  }
  if (bodyAnswers.answers.length === 0) return { answers: [] }
  const standing = bodyAnswers.answers.filter(answer => !answer.superseded)
  if (standing.length > 0) columns.answers = withAnswers(current, standing)
  for (const channel of channels) {
    if (!standing.some(answer => answer.channel === channel)) continue
    const flag = channelTable[channel].flag
    const summary = summaryFlag(channel, columns.answers!, consent_types)
    if (summary !== (row?.[flag] ?? null)) columns[flag] = summary
  }
  const before = bodyAnswers.answers.map(answer => loggedState(answer, current))
  const after = bodyAnswers.answers.map(answer => loggedAnswer(answer, current))
  return { answers: bodyAnswers.answers, consents: { before, after } }
}

function loggedState({ consent_type_id, channel }: Answer, current: Answers): LoggedAnswer {
  const { state = null, pending } = current[answerKey(consent_type_id, channel)] ?? {}
  return { consent_type_id, channel, state, ...(pending && { pending }) }
}

/**
 * The state after the answer, for the log. A superseded answer changes no state, and is logged beside the answer in
 * force.
 */
function loggedAnswer(answer: Answer, current: Answers): LoggedAnswer {
  const { consent_type_id, channel, stored, superseded, collected_at, state } = answer
  const { answered_at, pending, undated } = stored
  const unknown = undated && { undated }
  if (superseded) return { ...loggedState(answer, current), superseded: { state, answered_at, ...unknown } }
  return {
    consent_type_id,
    channel,
    state: stored.state,
    ...(pending && { pending }),
    ...(collected_at && { answered_at }),
    ...unknown,
  }
}
