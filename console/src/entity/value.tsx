import { Fragment, useState } from 'react'
import { dateOf } from '../app/dates.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { EntityLink } from './entity-link.tsx'
import { type Field, isErasedTarget } from './fields.ts'
import { messages } from './messages.ts'
import styles from './value.module.css'

/** Longer texts are clipped, because a value may have 64 KiB. */
const maxCharacters = 240

/** A value of any kind as text, never interpreted as HTML or as an address. */
export function Value({ value }: { value: unknown }) {
  const texts = useMessages(messages)
  if (value === null || value === undefined || value === '') return <span className="muted">—</span>
  if (typeof value === 'boolean') return <>{value ? texts.yes : texts.no}</>
  if (typeof value === 'string') return <LongText text={value} />
  if (typeof value === 'number') return <>{String(value)}</>
  if (isErasedTarget(value)) return <em>{texts.erasedTarget}</em>
  if (Array.isArray(value) && value.every(item => typeof item !== 'object' || isErasedTarget(item)))
    return value.map((item, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a list may have a value twice, and is never reordered
      <Fragment key={index}>
        {index > 0 && ', '}
        <Value value={item} />
      </Fragment>
    ))
  return <LongText text={JSON.stringify(value)} isCode />
}

/** A text of any length and direction. */
export function LongText({ text, isCode }: { text: string; isCode?: boolean }) {
  const texts = useMessages(messages)
  const [isOpen, setOpen] = useState(false)
  const shown = isOpen || text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}…`
  const Element = isCode ? 'code' : 'bdi'
  return (
    <>
      <Element className={styles.text}>{shown}</Element>
      {text.length > maxCharacters && (
        <>
          {' '}
          <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? texts.showLess : texts.showAll}
          </button>
        </>
      )}
    </>
  )
}

type TargetsProps = {
  owner: string
  value: unknown
  /** The names of the targets, by their identifiers. */
  labels?: Readonly<Record<string, string>> | undefined
}

/** The targets of a relationship by their names, else by their external identifiers, or by their internal ones. */
export function Targets({ owner, value, labels = {} }: TargetsProps) {
  const targets: unknown[] = [value].flat()
  return (
    <span className={styles.targets}>
      {targets.map((target, index) => {
        const externalId = typeof target === 'string' ? target : null
        const id = internalIdOf(target)
        const identifier = externalId ?? id
        // biome-ignore lint/suspicious/noArrayIndexKey: a value that is no target has no other key
        if (identifier === undefined) return <code key={index}>{JSON.stringify(target)}</code>
        return (
          <EntityLink key={identifier} owner={owner} {...(id !== undefined && { id })} externalId={externalId}>
            <bdi>{Object.hasOwn(labels, identifier) ? labels[identifier] : identifier}</bdi>
          </EntityLink>
        )
      })}
    </span>
  )
}

/** The internal identifier in `{"id": …}` or `{"record_id": …}`. */
export function internalIdOf(target: unknown): string | undefined {
  const { id, record_id = id } = (target ?? {}) as { id?: unknown; record_id?: unknown }
  return typeof record_id === 'string' ? record_id : undefined
}

type FieldValueProps = {
  field: Pick<Field, 'kind' | 'target'>
  value: unknown
  /** The names of the targets of a relationship, by their identifiers. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Times are to the minute. */
  isShort?: boolean
}

/** A value by its field: links, a date or number of the locale, or unchanged. */
export function FieldValue({ field: { kind, target }, value, labels, isShort }: FieldValueProps) {
  const formats = useFormats()
  if (target !== undefined && value !== null && value !== undefined)
    return <Targets owner={target} value={value} labels={labels} />
  if (typeof value === 'number') return formats.exactNumber(value)
  if (typeof value !== 'string' || Number.isNaN(dateOf(value).getTime())) return <Value value={value} />
  if (kind === 'datetime')
    return <time dateTime={value}>{isShort ? formats.dateTime(value) : formats.exactTime(value)}</time>
  if (kind === 'date') return <time dateTime={value}>{formats.day(value)}</time>
  return <Value value={value} />
}
