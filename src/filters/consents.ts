import { consentDefaults } from '../consents/answers.ts'
import type { Subject } from './condition.ts'
import { always, anyOf, type Fragment, never, sql } from './fragment.ts'
import type { Condition } from './grammar.ts'

type ConsentCondition = Extract<Condition, { kind: 'consents' }>

/** Whether an effective consent, as a read shows it, matches: an absent type, channel or state matches any. */
export function consentCondition(
  { consent_type_id, channel, state }: ConsentCondition,
  { definitions, row }: Subject,
): Fragment {
  const consents = consentDefaults(definitions.consent_types).filter(
    ({ consent }) =>
      (consent_type_id ?? consent.consent_type_id) === consent.consent_type_id &&
      (channel ?? consent.channel) === consent.channel,
  )
  return anyOf(
    consents.map(({ answerKey, consent }) => {
      if (state === undefined) return always
      if (answerKey === null) return state === consent.state ? always : never
      const answer = sql`(${row}.answers->${answerKey}::text->>'state')::boolean`
      return sql`coalesce(${answer}, ${consent.state}::boolean) = ${state}::boolean`
    }),
  )
}
