import { channels, channelTable } from '../channels.ts'
import type { AnswerChoice } from '../consents/answer-changes.ts'
import { type Answers, questionsOf, type StandingAnswer, summaryFlag } from '../consents/answers.ts'
import type { ConsentChange } from '../entities/decide/decide-answers.ts'
import type { Columns, EntityRow } from '../entities/entity-row.ts'
import { sortableTime } from '../instant.ts'
import type { ConsentType } from '../organizations/definitions.ts'

/**
 * Returns which of two answers to one question stands: the one that was collected later, at equal times the refusal, then the
 * grant that waits for its confirmation. Between two equal ones the first stands.
 */
export function laterAnswer(one: StandingAnswer, other: StandingAnswer): StandingAnswer {
  return rankOf(other) > rankOf(one) ? other : one
}

const rankOf = ({ answered_at, state, pending }: StandingAnswer) =>
  `${sortableTime(answered_at)} ${state ? 0 : pending === true ? 1 : 2}`

/** The answer as the survivor's row has it: it names the person who gave it. */
export const givenBy = (person_id: string, answer: StandingAnswer): StandingAnswer => ({ person_id, ...answer })

/** The answers that change if those of another person are added. */
export function addAnswers(own: Answers, other: Answers, other_id: string): AnswerChoice[] {
  const changed: AnswerChoice[] = []
  for (const key of Object.keys(other)) {
    const before = Object.hasOwn(own, key) ? own[key] : undefined
    const added = givenBy(other_id, other[key]!)
    const after = before ? laterAnswer(before, added) : added
    if (after !== before) changed.push({ key, before, after })
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
      })),
    },
  }
}
