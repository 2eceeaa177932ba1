import { type Answer, expandAnswers, hasAnswers, summaryFlag, summaryFlags, withAnswers } from '../consents/answers.ts'
import type { Detail } from '../errors.ts'
import { channels, type Definitions } from '../organizations/definitions.ts'
import type { Columns, EntityRow } from './entity-row.ts'
import type { Write } from './write-request.ts'

/** Changed keys and their values, as a read names and shows them. */
export type Shown = Record<string, unknown>
export type ConsentChange = { before: Shown[]; after: Shown[] }

/**
 * What a body's consent fields come to: the answers for the history, and in `columns` the current answers and flags that
 * differ. Faults are added to `faults`; when there are any, nothing else is.
 */
export function decideAnswers(
  row: EntityRow | undefined,
  write: Write,
  { consent_types }: Definitions,
  at: string,
  columns: Columns,
  faults: Detail[],
): { answers: Answer[]; consents?: ConsentChange } {
  if (!hasAnswers(write.body)) return { answers: [] }
  const current = row?.answers ?? {}
  const given = expandAnswers(write.body, current, consent_types)
  if (write.operation === 'import')
    given.answers = given.answers.filter(({ state, previous_state }) => state !== previous_state)
  faults.push(...given.faults)
  if (given.faults.length > 0) return { answers: [] }
  for (const channel of channels) {
    const flag = summaryFlags[channel]
    const bare = given.standaloneFlags[flag]
    if (bare !== undefined && bare !== (row?.[flag] ?? null)) columns[flag] = bare
  }
  if (given.answers.length === 0) return { answers: [] }
  columns.answers = withAnswers(current, given.answers, at)
  for (const channel of channels) {
    if (!given.answers.some(answer => answer.channel === channel)) continue
    const flag = summaryFlags[channel]
    const summary = summaryFlag(channel, columns.answers, consent_types)
    if (summary !== (row?.[flag] ?? null)) columns[flag] = summary
  }
  const shown = (states: (answer: Answer) => boolean | null) =>
    given.answers.map(answer => ({
      consent_type_id: answer.consent_type_id,
      channel: answer.channel,
      state: states(answer),
    }))
  return {
    answers: given.answers,
    consents: { before: shown(answer => answer.previous_state), after: shown(answer => answer.state) },
  }
}
