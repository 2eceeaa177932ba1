import { type Attribute, attributeRules, attributeTypes, type RuleName, ruleNames, type Stack } from '@kith/client'
import { useMessages } from '../app/language.tsx'
import { Checkbox, FieldGroup, fieldsOf, TextField } from '../ui/field.tsx'
import { Select } from '../ui/select.tsx'
import { type AttributeDraft, takesRule } from './attribute-draft.ts'
import { messages } from './messages.ts'
import { ruleLabels } from './rule-labels.ts'

type AttributeFieldsProps = {
  draft: AttributeDraft
  onChange: (draft: AttributeDraft) => void
  /** The attribute, if it exists. Its key, type and target cannot change, and many values cannot become one. */
  declared?: Attribute
  stacks: readonly Stack[]
}

/** The fields of an attribute: its properties and its rules. */
export function AttributeFields({ draft, onChange, declared, stacks }: AttributeFieldsProps) {
  const texts = useMessages(messages)
  const set = (change: Partial<AttributeDraft>) => onChange({ ...draft, ...change })
  const field = fieldsOf(draft, set)
  return (
    <>
      <FieldGroup look="frame" legend={texts.whatItIs}>
        {!declared && (
          <>
            <TextField label={texts.key} help={texts.keyHelp} isRequired {...field('key')} />
            <Select
              label={texts.type}
              options={attributeTypes.map(type => ({ value: type, label: texts.types[type] }))}
              {...field('type')}
            />
          </>
        )}
        {!declared && draft.type === 'stack' && (
          <Select
            label={texts.target}
            options={stacks.map(({ key, name }) => ({ value: key, label: name === key ? key : `${name} (${key})` }))}
            {...field('target_stack')}
          />
        )}
        <TextField label={texts.name} {...field('name')} />
        <TextField label={texts.description} rows={2} {...field('description')} />
        <Select
          label={texts.values}
          options={[
            { value: 'one', label: texts.one, isDisabled: declared?.cardinality === 'many' },
            { value: 'many', label: texts.many },
          ]}
          help={texts.cardinalityHelp}
          {...field('cardinality')}
        />
        <Checkbox help={texts.indexedHelp} {...field('indexed')}>
          {texts.indexed}
        </Checkbox>
        {draft.type === 'text' && (
          <Checkbox help={texts.searchableHelp} {...field('searchable')}>
            {texts.searchable}
          </Checkbox>
        )}
      </FieldGroup>
      <RuleFields draft={draft} set={set} />
    </>
  )
}

type RuleFieldsProps = { draft: AttributeDraft; set: (change: Partial<AttributeDraft>) => void }

/** The rules that the type can have. Rules with a short operand are side by side. */
function RuleFields({ draft, set }: RuleFieldsProps) {
  const texts = useMessages(messages)
  const labels = useMessages(ruleLabels)
  const rules = ruleNames.filter(rule => takesRule(draft.type, rule))
  const isShort = (rule: RuleName) => ['value', 'number'].includes(attributeRules[rule].operand)
  const short = rules.filter(isShort)
  const fieldOf = (rule: RuleName) => {
    const { name: label, help } = labels[rule]
    const value = draft.rules[rule]
    const onChange = (operand: boolean | string) => set({ rules: { ...draft.rules, [rule]: operand } })
    const field = { onChange, help, name: `/${rule}` }
    const rows = attributeRules[rule].operand === 'list' && { rows: 3 }
    return typeof value === 'boolean' ? (
      <Checkbox key={rule} isSelected={value} {...field}>
        {label}
      </Checkbox>
    ) : (
      <TextField key={rule} label={label} value={value} {...rows} {...field} />
    )
  }
  return (
    <FieldGroup look="frame" legend={texts.rules}>
      <p className="small">{texts.rulesHelp}</p>
      {rules.filter(rule => !isShort(rule)).map(fieldOf)}
      {short.length > 0 && <FieldGroup look="grid">{short.map(fieldOf)}</FieldGroup>}
    </FieldGroup>
  )
}
