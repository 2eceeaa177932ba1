import { isDeepStrictEqual } from 'node:util'
import { type Answers, inOrder, questionOf, type StandingAnswer } from './answers.ts'

/** The answer in force to a question before and after a write. `key` is as in {@link answerKey}. */
export type AnswerChoice = { key: string; before: StandingAnswer | undefined; after: StandingAnswer | undefined }

/** The answers in force that differ. */
export function answerChanges(before: Answers, after: Answers): AnswerChoice[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap(key => {
    const choice = { key, before: answerAt(before, key), after: answerAt(after, key) }
    return isDeepStrictEqual(choice.before, choice.after) ? [] : [choice]
  })
}

const answerAt = (answers: Answers, key: string) => (Object.hasOwn(answers, key) ? answers[key] : undefined)

/** The answers in force that a write changes, in the format of a response. */
export function answerChangesToJson(choices: readonly AnswerChoice[]): object[] {
  return inOrder(choices).map(({ key, before, after }) => ({
    ...questionOf(key),
    before: answerToJson(before),
    after: answerToJson(after),
  }))
}

const answerToJson = (answer: StandingAnswer | undefined) =>
  answer
    ? {
        state: answer.state,
        pending: answer.pending === true,
        answered_at: answer.answered_at,
        person_id: answer.person_id ?? null,
      }
    : null
