import type { Attribute } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { isRelationship } from '../entity/schema.ts'
import { Select, TextField } from '../ui/field.tsx'
import { messages } from './messages.ts'
import { localMoment, momentOfLocal, type ParseFault, type ValueForm } from './value-text.ts'

type ValueFieldProps = {
  label: string
  attribute: Attribute | undefined
  form: ValueForm
  text: string
  onChange: (text: string) => void
  error?: string | undefined
  autoFocus?: boolean
  /** The label is not shown, because the surroundings show it. */
  isLabelHidden?: boolean
}

/** The words for a text that is no value. */
export function useFaultText(): (fault: ParseFault) => string {
  const texts = useMessages(messages)
  return fault => (fault.reason === 'json' ? texts.notJson(fault.words) : texts.notOfType[fault.reason])
}

/** A field for a value of an attribute. */
export function ValueField({
  label,
  attribute,
  form,
  text,
  onChange,
  error,
  autoFocus = false,
  isLabelHidden,
}: ValueFieldProps) {
  const texts = useMessages(messages)
  const name = isLabelHidden ? { 'aria-label': label } : { label }
  const field = { ...name, error, autoFocus }
  if (form === 'json')
    return <TextField {...field} rows={5} value={text} onChange={onChange} help={texts.jsonHelp} spellCheck="false" />
  if (form === 'lines') return <TextField {...field} rows={4} value={text} onChange={onChange} help={texts.linesHelp} />
  if (attribute?.type === 'boolean' || attribute?.enum)
    return <ChoiceField name={name} error={error} attribute={attribute} text={text} onChange={onChange} />
  if (attribute?.type === 'date') return <TextField {...field} type="date" value={text} onChange={onChange} />
  if (attribute?.type === 'datetime')
    return (
      <TextField
        {...field}
        type="datetime-local"
        // The browser would refuse seconds, which stored moments have.
        validationBehavior="aria"
        value={localMoment(text)}
        onChange={local => onChange(momentOfLocal(local))}
        help={texts.timeZoneHelp(Intl.DateTimeFormat().resolvedOptions().timeZone)}
      />
    )
  const isLong = text.length > 80 || text.includes('\n')
  return (
    <TextField
      {...field}
      {...(isLong && { rows: 5 })}
      {...(attribute?.type === 'number' && { inputMode: 'decimal' as const })}
      {...(attribute && isRelationship(attribute) && { help: texts.linkHelp })}
      value={text}
      onChange={onChange}
    />
  )
}

const none = ''

function ChoiceField({
  name,
  error,
  attribute,
  text,
  onChange,
}: Pick<ValueFieldProps, 'error' | 'text' | 'onChange'> & {
  name: { label: string } | { 'aria-label': string }
  attribute: Attribute
}) {
  const texts = useMessages(messages)
  const { yes, no } = useMessages(entityMessages)
  const values = attribute.enum ?? [true, false]
  const labelOf = (value: string | number | boolean) =>
    typeof value === 'boolean' ? (value ? yes : no) : String(value)
  // A stored value may be one that a later rule does not allow.
  const isUnlisted = text !== none && !values.some(value => String(value) === text)
  return (
    <Select
      {...name}
      error={error}
      options={[
        { value: 'none', label: texts.noValue },
        ...values.map(value => ({ value: `value ${value}`, label: labelOf(value) })),
        ...(isUnlisted ? [{ value: `value ${text}`, label: text }] : []),
      ]}
      value={text === none ? 'none' : `value ${text}`}
      onChange={key => onChange(key === 'none' ? none : key.slice('value '.length))}
    />
  )
}
