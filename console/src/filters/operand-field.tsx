import { useId } from 'react'
import { useMessages } from '../app/language.tsx'
import type { Suggested } from '../entity/fields.ts'
import { Suggestions } from '../entity/suggestions.tsx'
import { TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import type { Owner } from './field-types.ts'
import type { FilterField } from './fields.ts'
import styles from './filter.module.css'
import type { FieldType, Operator } from './filter-tree.ts'
import { messages } from './messages.ts'
import { DurationFields, TimeFields } from './time-fields.tsx'
import { WholeNumberField } from './whole-number-field.tsx'

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
  if (type === 'date' || type === 'datetime')
    return <TimeFields key={type} type={type} text={operand} onChange={onChange} />
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

/** A comparison with a whole value suggests those that are stored, or the targets of the relationship. */
function suggestedFor(owner: Owner, { name, type, target, isIndexed }: FilterField): Suggested | undefined {
  if (type === 'relation' && target !== undefined) return { target }
  return type === 'text' && isIndexed ? { owner, field: name } : undefined
}

function choicesOf(field: FilterField | undefined, type: FieldType, texts: (typeof messages)['en']) {
  if (type === 'boolean')
    return [
      { value: 'true', label: texts.yes },
      { value: 'false', label: texts.no },
    ]
  if (type === 'state')
    return [
      { value: 'active', label: texts.states.active },
      { value: 'placeholder', label: texts.states.placeholder },
    ]
  return field?.choices?.map(choice => ({ value: String(choice), label: String(choice) }))
}
