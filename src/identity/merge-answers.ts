import { channels, channelTable } from '../channels.ts'
import type { AnswerChoice } from '../consents/answer-changes.ts'
import { type Answers, compareAnswers, questionsOf, type StandingAnswer, summaryFlag } from '../consents/answers.ts'
import type { Columns, EntityRow } from '../entities/entity-row.ts'
import type { ConsentChange } from '../entities/write/decide-answers.ts'
import type { ConsentType } from '../organizations/definitions.ts'

/** The number of the change of the last answer of a person to a question, by {@link answerKey}, that was not superseded. */
export type SequenceOf = (person_id: string, key: string) => number | undefined

/** The answers that two people gave to the same questions, whose order only the numbers of their changes tell. */
export const tiedKeys = (own: Answers, other: Answers): string[] =>
  Object.keys(other).filter(key => Object.hasOwn(own, key) && compareAnswers(own[key]!, other[key]!) === 0)

/** The answer as the survivor's row has it: it names the person who gave it. */
export const givenBy = (person_id: string, answer: StandingAnswer): StandingAnswer => ({ person_id, ...answer })

type Answering = { id: string; answers: Answers }

/** The answers of a person that change if those of another one are added. */
export function addAnswers(own: Answering, other: Answering, sequenceOf: SequenceOf): AnswerChoice[] {
  const changed: AnswerChoice[] = []
  for (const key of Object.keys(other.answers)) {
    const before = Object.hasOwn(own.answers, key) ? own.answers[key] : undefined
    const after = givenBy(other.id, other.answers[key]!)
    const numbered = (answer: StandingAnswer) => ({ ...answer, sequence: sequenceOf(answer.person_id ?? own.id, key) })
    if (!before || compareAnswers(numbered(after), numbered(before)) > 0) changed.push({ key, before, after })
  }
  return changed
}

/** The columns of the changed answers, with the summary flags of their channels, and their entry in the change log. */
export function answerColumns(
  row: EntityRow,
  changed: readonly AnswerChoice[],
  types: readonly ConsentType[],
): { columns: Columns; consents?: ConsentChange } {
  if (changed.length === 0) return { columns: {} }
  const answers = { ...row.answers }
  for (const { key, after } of changed) {
    if (after) answers[key] = after
    else delete answers[key]
  }
  const columns: Columns = { answers }
  for (const channel of channels) {
    if (!changed.some(({ key }) => key.endsWith(`:${channel}`))) continue
    const flag = channelTable[channel].flag
    const summary = summaryFlag(channel, answers, types)
    if (summary !== row[flag]) columns[flag] = summary
  }
  const byKey = new Map(changed.map(choice => [choice.key, choice]))
  const logged = questionsOf(byKey.keys()).map(question => ({
    question,
    choice: byKey.get(`${question.consent_type_id}:${question.channel}`)!,
  }))
  return {
    columns,
    consents: {
      before: logged.map(({ question, choice: { before } }) => ({
        ...question,
        state: before?.state ?? null,
        ...(before?.pending && { pending: true as const }),
      })),
      after: logged.map(({ question, choice: { after } }) => ({
        ...question,
        state: after?.state ?? null,
        ...(after?.pending && { pending: true as const }),
        ...(after && { answered_at: after.answered_at }),
        ...(after?.undated && { undated: true as const }),
      })),
    },
  }
}
