import type { Attribute, Stack } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { messages as entityMessages } from '../entity/messages.ts'
import { messages as reportMessages } from '../reports/messages.ts'
import { Checkbox, FieldGroup } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

/** What a stack says of the people that its records are about. */
export type AboutPeople = Pick<Stack, 'summary' | 'erased_with'>
type Measure = NonNullable<Stack['summary']>['measures'][number]

const none = ''
const isSame = (one: Measure, other: Measure) => one.op === other.op && one.key === other.key

type AboutPeopleFieldsProps = {
  attributes: readonly Attribute[]
  value: AboutPeople
  onChange(change: Partial<AboutPeople>): void
}

/** With whom records are erased, and what the page of a person shows of them. A stack without a relationship to people has neither. */
export function AboutPeopleFields({ attributes, value: { summary, erased_with }, onChange }: AboutPeopleFieldsProps) {
  const texts = useMessages(messages)
  const { measures: ops } = useMessages(reportMessages)
  const { fields } = useMessages(entityMessages)
  const optionsOf = (...types: Attribute['type'][]) =>
    attributes.filter(({ type }) => types.includes(type)).map(({ key, name }) => ({ value: key, label: name }))
  const people = optionsOf('person')
  if (people.length === 0) return null
  const measures: { measure: Measure; label: string }[] = [
    { measure: { op: 'count' }, label: ops.count },
    ...optionsOf('number').flatMap(({ value: key, label }) =>
      (['sum', 'avg', 'min', 'max'] as const).map(op => ({ measure: { op, key }, label: `${ops[op]}: ${label}` })),
    ),
  ]
  const set = (measure: Measure, isSelected: boolean) => {
    const others = summary!.measures.filter(each => !isSame(each, measure))
    onChange({ summary: { ...summary!, measures: isSelected ? [...others, measure] : others } })
  }
  return (
    <>
      <Select<string>
        label={texts.erasedWith}
        help={texts.erasedWithHelp}
        name="/erased_with"
        options={[{ value: none, label: texts.erasedWithNobody }, ...people]}
        value={erased_with ?? none}
        onChange={key => onChange({ erased_with: key || null })}
      />
      <Select<string>
        label={texts.summary}
        help={texts.summaryHelp}
        name="/summary"
        options={[{ value: none, label: texts.noSummary }, ...people]}
        value={summary?.person ?? none}
        onChange={person => onChange({ summary: person ? { measures: [{ op: 'count' }], ...summary, person } : null })}
      />
      {summary && (
        <>
          <Select<string>
            label={texts.summaryTime}
            options={[{ value: none, label: fields.created_at }, ...optionsOf('date', 'datetime')]}
            value={summary.time ?? none}
            onChange={time => onChange({ summary: { ...summary, time: time || null } })}
          />
          <FieldGroup legend={texts.summaryMeasures} help={texts.summaryMeasuresHelp} name="/summary/measures">
            {measures.map(({ measure, label }) => (
              <Checkbox
                key={label}
                isSelected={summary.measures.some(each => isSame(each, measure))}
                onChange={isSelected => set(measure, isSelected)}
              >
                {label}
              </Checkbox>
            ))}
          </FieldGroup>
        </>
      )}
    </>
  )
}
