import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import type { Field } from './fields.ts'
import { messages } from './messages.ts'
import styles from './value.module.css'
import { Value } from './value.tsx'

/** A value as its field says: links, a date of the locale, or as it is. */
export function FieldValue({ field: { kind, target }, value }: { field: Field; value: unknown }) {
  const formats = useFormats()
  if (target !== undefined && value !== null && value !== undefined) return <Targets owner={target} value={value} />
  if (typeof value !== 'string') return <Value value={value} />
  if (kind === 'datetime') return <time dateTime={value}>{formats.exactTime(value)}</time>
  // A day has no time zone: it is the same day everywhere.
  if (kind === 'date') return <time dateTime={value}>{formats.date(`${value}T00:00`)}</time>
  return <Value value={value} />
}

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

function TargetLink({ owner, externalId }: { owner: string; externalId: string }) {
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
