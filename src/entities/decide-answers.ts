import { type Answer, expandAnswers, hasAnswers, summaryFlag, summaryFlags, withAnswers } from '../consents/answers.ts'
import type { Detail } from '../errors.ts'
import { channels, type Definitions } from '../organizations/definitions.ts'
import type { Columns, EntityRow } from './entity-row.ts'
import type { Write } from './write-request.ts'

/** Changed fields and their values, in the format of a read. */
export type FieldValues = Record<string, unknown>
export type ConsentChange = { before: FieldValues[]; after: FieldValues[] }

/**
 * Decides the consent fields of a body. Returns the answers for the history and sets changed answers and flags in
 * `columns`. Faults are added to `faults`; then nothing is returned and `columns` does not change.
 */
export function decideAnswers(
  row: EntityRow | undefined,
  write: Write,
  { definitions: { consent_types }, at }: { definitions: Definitions; at: string },
  columns: Columns,
  faults: Detail[],
): { answers: Answer[]; consents?: ConsentChange } {
  if (!hasAnswers(write.body)) return { answers: [] }
  const current = row?.answers ?? {}
  const bodyAnswers = expandAnswers(write.body, current, consent_types)
  if (write.operation === 'import')
    bodyAnswers.answers = bodyAnswers.answers.filter(({ state, previous_state }) => state !== previous_state)
  faults.push(...bodyAnswers.faults)
  if (bodyAnswers.faults.length > 0) return { answers: [] }
  for (const channel of channels) {
    const flag = summaryFlags[channel]
    const flagValue = bodyAnswers.standaloneFlags[flag]
    if (flagValue !== undefined && flagValue !== (row?.[flag] ?? null)) columns[flag] = flagValue
  }
  if (bodyAnswers.answers.length === 0) return { answers: [] }
  columns.answers = withAnswers(current, bodyAnswers.answers, at)
  for (const channel of channels) {
    if (!bodyAnswers.answers.some(answer => answer.channel === channel)) continue
    const flag = summaryFlags[channel]
    const summary = summaryFlag(channel, columns.answers, consent_types)
    if (summary !== (row?.[flag] ?? null)) columns[flag] = summary
  }
  const describeStates = (stateOf: (answer: Answer) => boolean | null) =>
    bodyAnswers.answers.map(answer => ({
      consent_type_id: answer.consent_type_id,
      channel: answer.channel,
      state: stateOf(answer),
    }))
  return {
    answers: bodyAnswers.answers,
    consents: {
      before: describeStates(answer => answer.previous_state),
      after: describeStates(answer => answer.state),
    },
  }
}
