import type { AnswerChoice } from '../consents/answer-changes.ts'
import {
  type Answers,
  compareAnswers,
  inOrder,
  type Question,
  questionOf,
  type StandingAnswer,
  summaryFlag,
} from '../consents/answers.ts'
import type { Columns, EntityRow } from '../entities/entity-row.ts'
import type { ConsentChange } from '../entities/write/decide/answers.ts'
import type { ConsentType } from '../organizations/definitions.ts'
import { channels, channelTable } from '../values/channels.ts'

/**
 * The version and the change of the last answer of a person to a question, by {@link answerKey}, that was not
 * superseded.
 */
export type GivenAt = (person_id: string, key: string) => { version: number; sequence: number } | undefined

/** The answer in the survivor's row, with the person who gave it. */
export const givenBy = (person_id: string, answer: StandingAnswer): StandingAnswer => ({ person_id, ...answer })

/** A person by its id, with its answers. */
export type Answering = { id: string; answers: Answers }

/** The answers of a person that change when the answers of another person are added. */
export function addAnswers(own: Answering, other: Answering, givenAt: GivenAt): AnswerChoice[] {
  return Object.entries(other.answers).flatMap(([key, answer]) => {
    const before = own.answers[key]
    const after = givenBy(other.id, answer)
    const numbered = (answer: StandingAnswer) => {
      return { ...answer, sequence: givenAt(answer.person_id ?? own.id, key)?.sequence }
    }
    return !before || compareAnswers(numbered(after), numbered(before)) > 0 ? [{ key, before, after }] : []
  })
}

/**
 * An answer of a merged person that counts as the survivor's, from version `since` of the survivor and until `until`.
 * `version` is that of the person who gave it.
 */
export type TakenAnswer = Question & { person_id: string; version: number; since: number; until?: number }

/** The answers of others that count as the survivor's from a version on, with the versions at which they were given. */
export const takenAnswers = (
  choices: readonly AnswerChoice[],
  since: number | undefined,
  givenAt: GivenAt,
): TakenAnswer[] =>
  choices.flatMap(({ key, after }) => {
    const person_id = after?.person_id
    const given = person_id === undefined ? undefined : givenAt(person_id, key)
    if (person_id === undefined || !given || since === undefined) return []
    return [{ person_id, ...questionOf(key), version: given.version, since }]
  })

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
  const logged = inOrder(changed).map(choice => ({ ...choice, question: questionOf(choice.key) }))
  return {
    columns,
    consents: {
      before: logged.map(({ question, before }) => ({ ...question, ...loggedState(before) })),
      after: logged.map(({ question, after }) => ({
        ...question,
        ...loggedState(after),
        ...(after && { answered_at: after.answered_at }),
        ...(after?.undated && { undated: true as const }),
      })),
    },
  }
}

const loggedState = (answer: StandingAnswer | undefined) => ({
  state: answer?.state ?? null,
  ...(answer?.pending && { pending: true as const }),
})
