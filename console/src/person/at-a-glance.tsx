import {
  type AggregateBody,
  type Channel,
  type ContactDecision,
  channelNames,
  type Person,
  type Stack,
} from '@kith/client'
import { type UseQueryResult, useQueries } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { readQuery } from '../app/client.ts'
import { mayUse } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { suppressionMessages } from '../deliverability/suppression-messages.ts'
import { entitiesOf, phoneOf } from '../entity/entities.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { attributesOf, consentTypeName, useDefinitions } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import { messages as reportMessages } from '../reports/messages.ts'
import { Badge, Facts, Problem, Section } from '../ui/page.tsx'
import { consentMessages } from './consent-messages.ts'
import { decisionQuery, explain } from './decision.ts'
import { glanceMessages } from './glance-messages.ts'
import styles from './person.module.css'

/**
 * The facts for a telephone call: the addresses of the person, the decisions whether to contact the person, and the
 * recent activity.
 */
export function AtAGlance({ person }: { person: Person }) {
  const texts = useMessages(glanceMessages)
  const sums = useSums(person.id)
  const mayDecide = useScope('consents:read')
  const hasContact = mayUse('read', 'people', 'email') || mayUse('read', 'people', 'mobile_number')
  const asksConsents = mayDecide && person.consents?.length > 0
  if (!hasContact && !asksConsents && sums.length === 0) return null
  return (
    <Section title={texts.glance}>
      <div className={styles.glance}>
        {hasContact && <Contact person={person} />}
        {asksConsents && <MayBeWrittenTo person={person} />}
        {sums.length > 0 && <Sums sums={sums} />}
      </div>
    </Section>
  )
}

type PartProps = { title: string; queries?: readonly UseQueryResult[]; children: ReactNode }

function Part({ title, queries, children }: PartProps) {
  const failed = queries?.find(({ error }) => error)
  return (
    <div className={styles.part}>
      <h3>{title}</h3>
      {failed && <Problem error={failed.error} onRetry={() => failed.refetch()} />}
      {children}
    </div>
  )
}

/** The phone number and the email, as links. */
function Contact({ person }: { person: Person }) {
  const texts = useMessages(glanceMessages)
  const entityTexts = useMessages(entityMessages)
  const { email, mobile_number, mobile_e164 } = person
  const phone = mobile_number && phoneOf(person)
  const link = (href: string, text: string) => (
    <a href={href} className={styles.address}>
      <bdi>{text}</bdi>
    </a>
  )
  const facts: [string, ReactNode][] = [
    [entityTexts.phone, phone && link(`tel:${mobile_e164 ?? phone.replaceAll(/[^\d+]/g, '')}`, phone)],
    // An address may have characters that end a path, such as a question mark.
    [texts.email, email && link(`mailto:${encodeURIComponent(email).replace('%40', '@')}`, email)],
  ]
  return (
    <Part title={texts.contact}>
      {phone || email ? <Facts facts={facts} /> : <p className="muted">{texts.noContact}</p>}
    </Part>
  )
}

/** The maximum number of purposes in this section, with one request each. The section of the consents has all. */
const maxPurposes = 12

/** The purposes of each channel, each with the decision and, for a no, its first reason. */
function MayBeWrittenTo({ person }: { person: Person }) {
  const texts = useMessages(glanceMessages)
  const { channels } = useMessages(entityMessages)
  const { consents } = person
  const asked = consents.slice(0, maxPurposes)
  const queries = useQueries({ queries: asked.map(consent => decisionQuery(person, consent)) })
  const decided = asked.flatMap((consent, index) => {
    const decision = queries[index]!.data
    return decision ? [{ ...consent, decision }] : []
  })
  const byChannel = channelNames.map(channel => {
    const own = decided.filter(each => each.channel === channel)
    return [channels[channel], own.length > 0 && <Decisions key={channel} channel={channel} decided={own} />] as const
  })
  return (
    <Part title={texts.mayWrite} queries={queries}>
      <Facts facts={byChannel} />
      {consents.length > maxPurposes && <p className="small">{texts.more(consents.length - maxPurposes)}</p>}
    </Part>
  )
}

type DecisionsProps = { channel: Channel; decided: { consent_type_id: number; decision: ContactDecision }[] }

function Decisions({ channel, decided }: DecisionsProps) {
  const texts = useMessages(consentMessages)
  const suppressions = useMessages(suppressionMessages).reasons
  const formats = useFormats()
  const { consent_types } = useDefinitions().definitions
  // Without an address, the decision is the same for every purpose.
  if (decided.every(({ decision }) => decision.reasons[0]?.rule === 'no_address'))
    return <Badge kind="caution">{texts.noAddress[channel]}</Badge>
  return (
    <ul className="column tight">
      {decided.map(({ consent_type_id, decision: { allowed, reasons } }) => (
        <li key={consent_type_id}>
          <Badge kind={allowed ? 'positive' : 'negative'}>{allowed ? texts.yes : texts.no}</Badge>{' '}
          <bdi>{consentTypeName(consent_types, consent_type_id)}</bdi>
          {!allowed && reasons[0] && (
            <p className="small">{explain(reasons[0], channel, texts, formats.date, suppressions)}</p>
          )}
        </li>
      ))}
    </ul>
  )
}

/** The summary of the records of a stack for a person. `names` has the attributes of the measures. */
type Sum = { stack: Stack; body: AggregateBody & Record<string, unknown>; names: (string | undefined)[] }

/** The summaries of the stacks that define one, if the session may read its attributes. */
function useSums(id: string): Sum[] {
  const { definitions } = useDefinitions()
  const mayRead = useScope('records:read')
  return definitions.stacks.flatMap(stack => {
    const { key, summary } = stack
    if (!summary || !mayRead) return []
    const { person, time = null, measures } = summary
    const attributes = attributesOf(definitions, key)
    const named = [person, time, ...measures.map(measure => measure.key)].filter(name => name != null)
    if (named.some(name => attributes.get(name)?.state !== 'active')) return []
    const fieldOf = (name: string) => attributePrefix + name
    const filter = {
      [fieldOf(person)]: { $some: { id } },
      [time === null ? 'created_at' : fieldOf(time)]: { $gte: { $ago: 'P12M' } },
    }
    const measured = measures.map(({ op, key }) => ({ op, ...(key !== undefined && { field: fieldOf(key) }) }))
    const names = measures.map(({ key }) => key && (attributes.get(key)?.name || key))
    return [{ stack, names, body: { filter, measures: measured } }]
  })
}

const sumQuery = ({ stack: { key }, body }: Sum) =>
  readQuery(['entities', key, 'aggregate', body], options => entitiesOf(key).aggregate(body as never, options))

/** The measures of each stack over the last twelve months. */
function Sums({ sums }: { sums: readonly Sum[] }) {
  const texts = useMessages(glanceMessages)
  const { measures: operations } = useMessages(reportMessages)
  const formats = useFormats()
  const queries = useQueries({ queries: sums.map(sumQuery) })
  const facts = sums.map(({ stack, body, names }, index) => {
    const group = queries[index]!.data?.groups[0]
    const results = body.measures!.map(({ op }, at) => {
      const result = group?.measures[at] ?? (op === 'count' ? 0 : null)
      const shown = typeof result === 'number' ? formats.number(result) : (result ?? '—')
      return op === 'count' ? shown : `${texts.measured(operations[op], names[at] ?? '')}: ${shown}`
    })
    return [stack.name, queries[index]!.data && results.join(' · ')] as const
  })
  return (
    <Part title={texts.lastTwelveMonths} queries={queries}>
      <Facts facts={facts} />
    </Part>
  )
}
