import { answerKey, consentDefaults, type Question } from '../../consents/answers.ts'
import { channels, channelTable } from '../../values/channels.ts'
import type { Condition, ConsentField } from '../grammar/grammar.ts'
import { type Comparable, rangeSigns, testOf, textColumn, timeColumn } from './comparable.ts'
import type { Subject } from './condition.ts'
import { allOf, always, anyOf, columnFragments, type Fragment, never, sql } from './fragment.ts'

type ConsentCondition = Extract<Condition, { kind: 'consents' }>

/** Whether an effective consent, as a read shows it, matches: an absent type, channel, state or `pending` matches any. */
export function consentCondition(
  { consent_type_id, channel, state, pending, tests }: ConsentCondition,
  { definitions, row }: Subject,
): Fragment {
  const consents = consentDefaults(definitions.consent_types).filter(
    ({ consent }) =>
      (consent_type_id ?? consent.consent_type_id) === consent.consent_type_id &&
      (channel ?? consent.channel) === consent.channel,
  )
  return anyOf(
    consents.map(({ answerKey, consent }) => {
      const answer = answerKey === null ? null : sql`${row}.answers->${answerKey}::text`
      return allOf([
        state === undefined ? always : hasState(answer, consent.state, state),
        pending === undefined ? always : isPending(answer, pending),
        ...tests.map(({ field, test }) => testOf(answer === null ? missing : fieldsOfAnswer[field](answer), test)),
      ])
    }),
  )
}

function hasState(answer: Fragment | null, defaultState: boolean, state: boolean): Fragment {
  if (answer === null) return state === defaultState ? always : never
  return sql`coalesce((${answer}->>'state')::boolean, ${defaultState}::boolean) = ${state}::boolean`
}

/** Whether an answer is a grant that waits for its confirmation. A consent without an answer is none. */
function isPending(answer: Fragment | null, pending: boolean): Fragment {
  if (answer === null) return pending ? never : always
  return sql`coalesce((${answer}->>'pending')::boolean, false) = ${pending}::boolean`
}

const addressOn = columnFragments(channels.map(channel => channelTable[channel].key))

/**
 * Whether a person may be written to, by the rules of `decideContact`. Under an archived consent type, nobody may. A grant that waits
 * for its confirmation is stored as false.
 */
export function contactableCondition(
  { consent_type_id, channel }: Question,
  { definitions, organization, row }: Subject,
): Fragment {
  const { state, mandatory, default_state } = definitions.consent_types.find(({ id }) => id === consent_type_id)!
  if (state === 'archived') return never
  const answer = mandatory ? null : sql`${row}.answers->${answerKey(consent_type_id, channel)}::text`
  const address = addressOn[channelTable[channel].key](row)
  const consents = allOf([sql`${address} is not null`, hasState(answer, mandatory || default_state, true)])
  if (mandatory) return consents
  // As a value, which PostgreSQL looks up for each row that is left. It joins a condition with all refusals of the organization.
  const addressAnswer = sql`select w.state from address_answers w
    where w.organization_id = ${organization} and w.channel = ${channel} and w.address = ${address}
      and w.consent_type_id = ${consent_type_id}::integer`
  return allOf([consents, sql`coalesce((${addressAnswer}), true)`])
}

/** A field of a consent that no answer decides. */
const missing: Comparable = {
  isMissing: always,
  equalsAny: () => never,
  isInRange: () => never,
  matchesText: () => never,
}

/** The fields of an answer. They are null if there is no answer. */
const fieldsOfAnswer: Record<ConsentField, (answer: Fragment) => Comparable> = {
  method: answer => textColumn(sql`(${answer}->>'method')`),
  text_version: answer => orFalse(numberColumn(sql`(${answer}->>'text_version')::numeric`)),
  answered_at: answer => {
    const time = sql`(${answer}->>'answered_at')::timestamptz`
    return orFalse({ ...timeColumn(time), isMissing: sql`${time} is null` })
  },
}

function numberColumn(value: Fragment): Comparable {
  return {
    isMissing: sql`${value} is null`,
    equalsAny: values => sql`${value} = any(${values.map(String)}::numeric[])`,
    isInRange: (operator, operand) => sql`${value} ${rangeSigns[operator]} ${String(operand)}::numeric`,
    matchesText: () => never,
  }
}

/** A comparison with a value that is null is false. */
function orFalse(value: Comparable): Comparable {
  return {
    ...value,
    equalsAny: values => sql`coalesce(${value.equalsAny(values)}, false)`,
    isInRange: (operator, operand) => sql`coalesce(${value.isInRange(operator, operand)}, false)`,
  }
}
