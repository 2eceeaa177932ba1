import { answerKey, consentDefaults, type Question } from '../../consents/answers.ts'
import { type Channel, channels, channelTable } from '../../values/channels.ts'
import type { Condition, ConsentField } from '../grammar/grammar.ts'
import { type Comparable, instantColumn, numericColumn, testOf, textColumn } from './comparable.ts'
import { type CompiledCondition, candidateRanks, compiled, or, type Subject } from './condition.ts'
import { allOf, always, anyOf, columnFragments, type Fragment, negated, never, sql } from './fragment.ts'

type ConsentCondition = Extract<Condition, { kind: 'consents' }>

/**
 * The condition on an effective consent, as a read shows it. An absent type, channel, state or `pending` matches any.
 */
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

/**
 * The condition that an answer is a grant that waits for its confirmation. A consent without an answer is not pending.
 */
function isPending(answer: Fragment | null, pending: boolean): Fragment {
  if (answer === null) return pending ? never : always
  return sql`coalesce((${answer}->>'pending')::boolean, false) = ${pending}::boolean`
}

const addressOn = columnFragments(channels.map(channel => channelTable[channel].key))

/**
 * The condition that a person may be written to, by the rules of `decideContact`. An archived consent type allows
 * nothing. A grant that waits for its confirmation is stored as false.
 */
export function contactableCondition(
  { consent_type_id, channel, at }: Question & { at: string },
  subject: Subject,
): Fragment {
  const { definitions, organization, row } = subject
  const { state, mandatory, default_state } = definitions.consent_types.find(({ id }) => id === consent_type_id)!
  if (state === 'archived') return never
  const answer = mandatory ? null : sql`${row}.answers->${answerKey(consent_type_id, channel)}::text`
  const address = addressOn[channelTable[channel].key](row)
  const reached = allOf([
    sql`${address} is not null`,
    hasState(answer, mandatory || default_state, true),
    negated(isSuppressed(channel, at, subject)),
  ])
  if (mandatory) return reached
  // PostgreSQL looks up a scalar subquery for each remaining row. It would join a condition with all refusals of the
  // organization.
  const addressAnswer = sql`select w.state from address_answers w
    where w.organization_id = ${organization} and w.channel = ${channel} and w.address = ${address}
      and w.consent_type_id = ${consent_type_id}::integer`
  return allOf([reached, sql`coalesce((${addressAnswer}), true)`])
}

/** The condition that a person's address on a channel is suppressed at a time. */
function isSuppressed(channel: Channel, at: string, { row, organization }: Subject): Fragment {
  return sql`exists (select from deliverability s where s.organization_id = ${organization} and s.channel = ${channel}::text
    and s.address = ${addressOn[channelTable[channel].key](row)} and s.suppressed_until > ${at}::timestamptz)`
}

/**
 * The condition that the person has an address in a state, on one channel or on any. An index finds the people of the
 * suppressed addresses.
 */
export function deliverabilityCondition(
  { channel: asked, state, at }: Extract<Condition, { kind: 'deliverability' }>,
  subject: Subject,
): CompiledCondition {
  const { organization } = subject
  return or(
    channels
      .filter(channel => (asked ?? channel) === channel)
      .map(channel => {
        const column = addressOn[channelTable[channel].key]
        const suppressed = isSuppressed(channel, at, subject)
        if (state === 'suppressed') {
          const select = sql`select g.id from deliverability s join entities g
            on g.organization_id = ${organization} and g.stack_id = 0 and ${column(sql`g`)} = s.address
            where s.organization_id = ${organization} and s.channel = ${channel}::text and s.suppressed_until > ${at}::timestamptz`
          return compiled(suppressed, {
            rank: candidateRanks.range,
            selects: [select],
            rest: always,
            isDistinct: true,
          })
        }
        const hasAddress = sql`${column(subject.row)} is not null`
        return compiled(state === undefined ? hasAddress : allOf([hasAddress, negated(suppressed)]))
      }),
  )
}

/** A field of a consent without an answer. */
const missing: Comparable = {
  isMissing: always,
  equalsAny: () => never,
  isInRange: () => never,
  matchesText: () => never,
}

/** The fields of an answer, or null without one. */
const fieldsOfAnswer: Record<ConsentField, (answer: Fragment) => Comparable> = {
  method: answer => textColumn(sql`(${answer}->>'method')`),
  text_version: answer => numericColumn(sql`(${answer}->>'text_version')::numeric`),
  answered_at: answer => {
    const time = sql`(${answer}->>'answered_at')::timestamptz`
    return { ...instantColumn(sql`extract(epoch from ${time})`), isMissing: sql`${time} is null` }
  },
}
