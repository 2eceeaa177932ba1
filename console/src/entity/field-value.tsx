import { useFormats } from '../app/language.tsx'
import type { Field } from './fields.ts'
import { Targets } from './targets.tsx'
import { Value } from './value.tsx'

type FieldValueProps = {
  field: Pick<Field, 'kind' | 'target'>
  value: unknown
  /** The names of the targets of a relationship, by their identifiers. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Times are to the minute. */
  isShort?: boolean
}

/** A value as its field says: links, a date or number of the locale, or as it is. */
export function FieldValue({ field: { kind, target }, value, labels, isShort }: FieldValueProps) {
  const formats = useFormats()
  if (target !== undefined && value !== null && value !== undefined)
    return <Targets owner={target} value={value} labels={labels} />
  if (typeof value === 'number') return formats.exactNumber(value)
  if (typeof value !== 'string') return <Value value={value} />
  if (kind === 'datetime')
    return <time dateTime={value}>{isShort ? formats.dateTime(value) : formats.exactTime(value)}</time>
  // A day has no time zone: it is the same day everywhere.
  if (kind === 'date') return <time dateTime={value}>{formats.date(`${value}T00:00`)}</time>
  return <Value value={value} />
}
