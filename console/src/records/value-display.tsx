import type { Attribute } from '@kith/client'
import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { isRelationship, targetOwner } from '../entity/schema.ts'
import { Value } from '../entity/value.tsx'
import { messages } from './messages.ts'
import styles from './records.module.css'

/** A value as its attribute says: a link, a date of the locale, or as it is. */
export function AttributeValue({ attribute, value }: { attribute: Attribute | undefined; value: unknown }) {
  const formats = useFormats()
  if (attribute && isRelationship(attribute) && value !== null && value !== undefined)
    return <Targets owner={targetOwner(attribute)} value={value} />
  if (attribute?.type === 'datetime' && isMoment(value)) return <time dateTime={value}>{formats.exactTime(value)}</time>
  if (attribute?.type === 'date' && isDay(value)) return <time dateTime={value}>{formats.date(`${value}T00:00`)}</time>
  return <Value value={value} />
}

const isMoment = (value: unknown): value is string =>
  typeof value === 'string' && value.includes('T') && !Number.isNaN(Date.parse(value))
const isDay = (value: unknown): value is string => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value)

/** The targets of a relationship by their external identifiers. */
function Targets({ owner, value }: { owner: string; value: unknown }) {
  const texts = useMessages(messages)
  const targets = Array.isArray(value) ? value : [value]
  return (
    <span className={styles.targets!}>
      {targets.map((target, index) =>
        typeof target === 'string' ? (
          <TargetLink key={target} owner={owner} externalId={target} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: targets without an identifier have no other key
          <span key={index}>{target === null ? texts.withoutIdentifier : <Value value={target} />}</span>
        ),
      )}
    </span>
  )
}

/** A link to a person or record by the external identifier. */
export function TargetLink({ owner, externalId }: { owner: string; externalId: string }) {
  const text = <bdi>{externalId}</bdi>
  return owner === 'people' ? (
    <Link to="/people/$externalId" params={{ externalId }}>
      {text}
    </Link>
  ) : (
    <Link
      to="/records/$stackKey/$recordId"
      params={{ stackKey: owner, recordId: externalId }}
      search={{ by: 'external_id' }}
    >
      {text}
    </Link>
  )
}
