import { useMessages } from '../app/language.tsx'
import { Select } from '../ui/select.tsx'
import { operatorsOf } from './fields.ts'
import { type FieldType, isTime, type Operator, type Quantifier } from './filter-tree.ts'
import { messages } from './messages.ts'

type OperatorSelectProps<Offered> = {
  /** The type of the tested value. */
  type: FieldType
  /** The tested field, if its name affects the words. */
  field?: string
  operators?: readonly Operator[]
  /** The quantifiers of a relationship, which come before the operators. */
  quantifiers?: readonly Quantifier[]
  value: Offered
  onChange(value: Offered): void
}

/** Chooses how a value is tested. */
export function OperatorSelect<Offered extends Operator | Quantifier>({
  type,
  field,
  operators = operatorsOf[type],
  quantifiers = [],
  value,
  onChange,
}: OperatorSelectProps<Offered>) {
  const texts = useMessages(messages)
  const labels: Record<Operator | Quantifier, string> = {
    ...texts.operators,
    ...texts.quantifiers,
    ...(isTime(type) && texts.timeOperators),
    ...(field === 'date_of_birth' && { anniversary: texts.birthday }),
  }
  // A filter that was typed as JSON may use an operator that the list does not offer.
  const offered = new Set([...quantifiers, ...operators, value]) as Set<Offered>
  return (
    <Select<Offered>
      aria-label={texts.operator}
      options={[...offered].map(each => ({ value: each, label: labels[each] }))}
      value={value}
      onChange={onChange}
    />
  )
}
