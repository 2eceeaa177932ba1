import { Link } from '@tanstack/react-router'
import { useFormats } from '../app/language.tsx'
import type { Field } from './fields.ts'
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

/** The targets of a relationship by their external identifiers, or by their internal ones. */
function Targets({ owner, value }: { owner: string; value: unknown }) {
  const targets: unknown[] = Array.isArray(value) ? value : [value]
  return (
    <span className={styles.targets!}>
      {targets.map((target, index) => {
        if (typeof target === 'string') return <TargetLink key={target} owner={owner} externalId={target} />
        const id = internalIdOf(target)
        if (id !== undefined) return <IdentifiedLink key={id} owner={owner} id={id} />
        // biome-ignore lint/suspicious/noArrayIndexKey: a value that is no target has no other key
        return <Value key={index} value={target} />
      })}
    </span>
  )
}

/** The internal identifier in `{"id": …}` or `{"record_id": …}`. */
function internalIdOf(target: unknown): string | undefined {
  const { id, record_id = id } = (target ?? {}) as { id?: unknown; record_id?: unknown }
  return typeof record_id === 'string' ? record_id : undefined
}

/** The link to a target without an external identifier. */
function IdentifiedLink({ owner, id }: { owner: string; id: string }) {
  const text = <bdi>{id}</bdi>
  return owner === 'people' ? (
    <Link to="/people/$externalId" params={{ externalId: id }} search={{ by: 'id' }}>
      {text}
    </Link>
  ) : (
    <Link to="/records/$stackKey/$recordId" params={{ stackKey: owner, recordId: id }}>
      {text}
    </Link>
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
