import { useMessages } from '../app/language.tsx'
import { localTime, momentOf } from '../entity/fields.ts'
import { TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import styles from './filter.module.css'
import { messages } from './messages.ts'
import {
  type DurationUnit,
  durationOf,
  durationUnits,
  type RelativeOperand,
  relativeOfText,
  relativeOperands,
  textOfDuration,
  textOfRelative,
} from './relative-time.ts'
import { WholeNumberField } from './whole-number-field.tsx'

type TimeType = 'date' | 'datetime'
type TimeProps = { type: TimeType; text: string; onChange(text: string): void }

/** A date or a time, or one that is counted from today. */
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
        options={(['date', ...relativeOperands] as const).map(value => ({ value, label: texts.whens[value] }))}
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
