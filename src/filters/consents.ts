import { channels } from '../organizations/definitions.ts'
import type { Subject } from './condition.ts'
import { always, anyOf, type Fragment, never, sql } from './fragment.ts'
import type { Condition } from './grammar.ts'

type ConsentCondition = Extract<Condition, { kind: 'consents' }>

/** Whether an effective consent, as a read shows it, matches: an absent type, channel or state matches any. */
export function consentCondition(
  { consent_type_id, channel, state }: ConsentCondition,
  { definitions, row }: Subject,
): Fragment {
  const consents = definitions.consent_types
    .filter(type => type.state === 'active' && (consent_type_id ?? type.id) === type.id)
    .flatMap(type => {
      const isConfigured = (name: string) => type.channels.some(entry => entry.channel === name)
      return channels.filter(name => isConfigured(name) && (channel ?? name) === name).map(name => ({ type, name }))
    })
  return anyOf(
    consents.map(({ type, name }) => {
      if (state === undefined) return always
      if (type.mandatory) return state ? always : never
      const answer = sql`(${row}.answers->${`${type.id}:${name}`}::text->>'state')::boolean`
      return sql`coalesce(${answer}, ${type.default_state}::boolean) = ${state}::boolean`
    }),
  )
}
