import { useId } from 'react'
import { useMessages } from '../app/language.tsx'
import { localTime, momentOf, type Suggested } from '../entity/fields.ts'
import { Suggestions } from '../entity/suggestions.tsx'
import { TextField } from '../ui/field.tsx'
import { Select, type SelectProps } from '../ui/select.tsx'
import type { Owner } from './field-types.ts'
import type { FilterField } from './fields.ts'
import styles from './filter.module.css'
import { type FieldType, isTime, type Operator } from './filter-tree.ts'
import { messages } from './messages.ts'
import {
  type DurationUnit,
  durationOf,
  durationUnits,
  type RelativeOperand,
  relativeOfText,
  textOfDuration,
  textOfRelative,
} from './relative-time.ts'

type OperandFieldProps = {
  /** The owner of the tested field. */
  owner: Owner
  field: FilterField | undefined
  type: FieldType
  operator: Operator
  operand: string
  onChange(operand: string): void
}

/** The field for the operand of a condition, by the type of the tested field. */
export function OperandField({ owner, field, type, operator, operand, onChange }: OperandFieldProps) {
  const texts = useMessages(messages)
  const list = useId()
  if (operator === 'exists' || operator === 'missing' || operator === 'before_today') return null
  const label = texts.value
  if (operator === 'in' || operator === 'nin')
    return (
      <TextField aria-label={texts.values} placeholder={texts.values} rows={3} value={operand} onChange={onChange} />
    )
  if (operator === 'in_last' || operator === 'in_next')
    return <DurationFields type={type === 'date' ? 'date' : 'datetime'} text={operand} onChange={onChange} />
  if (operator === 'anniversary')
    return (
      <div className={styles.duration}>
        <WholeNumberField label={texts.withinDays} maxDigits={3} value={operand} onChange={onChange} />
        {texts.durationUnits.days}
      </div>
    )
  const options = choicesOf(field, type, texts)
  const isEquality = operator === 'eq' || operator === 'neq'
  if (options && isEquality)
    return <Select aria-label={label} options={options} value={operand || null} onChange={onChange} />
  if (isTime(type)) return <TimeFields key={type} type={type} text={operand} onChange={onChange} />
  const inputMode = type === 'number' ? 'decimal' : 'text'
  const suggested = isEquality && field && suggestedFor(owner, field)
  return (
    <>
      <TextField
        aria-label={label}
        placeholder={label}
        inputMode={inputMode}
        value={operand}
        onChange={onChange}
        {...(suggested && { list })}
      />
      {suggested && <Suggestions id={list} of={suggested} typed={operand} />}
    </>
  )
}

/** A comparison with a whole value suggests stored values, or the targets of the relationship. */
function suggestedFor(owner: Owner, { name, type, target, isIndexed }: FilterField): Suggested | undefined {
  if (type === 'relation' && target !== undefined) return { target }
  return type === 'text' && isIndexed ? { owner, field: name } : undefined
}

type Options = SelectProps<string>['options']

function choicesOf(
  field: FilterField | undefined,
  type: FieldType,
  texts: (typeof messages)['en'],
): Options | undefined {
  if (type === 'boolean') return { true: texts.yes, false: texts.no }
  if (type === 'state') return texts.states
  return field?.choices?.map(choice => ({ value: String(choice), label: String(choice) }))
}

type TimeType = 'date' | 'datetime'
type TimeProps = { type: TimeType; text: string; onChange(text: string): void }

/** A date or a time, absolute or relative to today. */
export function TimeFields({ type, text, onChange }: TimeProps) {
  const texts = useMessages(messages)
  const relative = relativeOfText(text)
  const choose = (chosen: 'date' | RelativeOperand) => {
    if (chosen === 'date') return onChange('')
    const duration = relative && durationOf(relative.operand) ? relative.operand : 'P30D'
    onChange(textOfRelative(chosen, chosen === '$today' ? 'start' : duration))
  }
  return (
    <div className={styles.time}>
      <Select<'date' | RelativeOperand>
        aria-label={texts.when}
        options={texts.whens}
        value={relative?.name ?? 'date'}
        onChange={choose}
      />
      {!relative && <DateField type={type} text={text} onChange={onChange} />}
      {relative && relative.name !== '$today' && (
        <DurationFields
          type={type}
          text={relative.operand}
          onChange={next => onChange(textOfRelative(relative.name, next))}
        />
      )}
    </div>
  )
}

function DateField({ type, text, onChange }: TimeProps) {
  const { value: label } = useMessages(messages)
  if (type === 'date') return <TextField aria-label={label} type="date" value={text} onChange={onChange} />
  return (
    <TextField
      aria-label={label}
      type="datetime-local"
      value={localTime(text).slice(0, 16)}
      onChange={next => onChange(momentOf(next) ?? '')}
    />
  )
}

/** A number of days, or of another unit. */
export function DurationFields({ type, text, onChange }: TimeProps) {
  const texts = useMessages(messages)
  const { count, unit } = durationOf(text) ?? { count: '', unit: 'days' as const }
  const units = durationUnits.filter(each => each !== 'hours' || type === 'datetime' || unit === 'hours')
  return (
    <div className={styles.duration}>
      <WholeNumberField
        label={texts.durationCount}
        maxDigits={5}
        value={count}
        onChange={next => onChange(textOfDuration({ count: next, unit }))}
      />
      <Select<DurationUnit>
        aria-label={texts.durationUnit}
        options={units.map(value => ({ value, label: texts.durationUnits[value] }))}
        value={unit}
        onChange={next => onChange(textOfDuration({ count, unit: next }))}
      />
    </div>
  )
}

type WholeNumberProps = { label: string; maxDigits: number; value: string; onChange(digits: string): void }

/** A number without a sign and decimals. The field ignores other characters. */
export function WholeNumberField({ label, maxDigits, value, onChange }: WholeNumberProps) {
  return (
    <TextField
      aria-label={label}
      inputMode="numeric"
      maxLength={maxDigits}
      value={value}
      onChange={text => onChange(text.replaceAll(/\D/g, ''))}
    />
  )
}
