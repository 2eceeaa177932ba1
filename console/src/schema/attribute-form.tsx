import { attributeRules, attributeTypes, type RuleName, type Stack } from '@kith/client'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { Checkbox, Select, TextField } from '../ui/field.tsx'
import { type AttributeDraft, takesRule } from './attribute-draft.ts'
import { messages } from './messages.ts'
import styles from './schema.module.css'

/** The members of an attribute that the form has a field for, as the service names them in a refusal. */
export const attributeFields = [
  ...['key', 'name', 'description', 'type', 'target_stack', 'cardinality', 'indexed', 'searchable'],
  ...Object.keys(attributeRules),
]

type AttributeFieldsProps = {
  draft: AttributeDraft
  onChange: (draft: AttributeDraft) => void
  errors: Partial<Record<string, string>>
  /** The attribute exists, so its key, type and target stay. */
  isDeclared: boolean
  stacks: readonly Stack[]
}

/** The fields of an attribute: what it is, and its rules. */
export function AttributeFields({ draft, onChange, errors, isDeclared, stacks }: AttributeFieldsProps) {
  const texts = useMessages(messages)
  const set = (change: Partial<AttributeDraft>) => onChange({ ...draft, ...change })
  return (
    <>
      <fieldset className={styles.fields!}>
        <legend>{texts.whatItIs}</legend>
        {!isDeclared && <NewAttributeFields draft={draft} set={set} errors={errors} stacks={stacks} />}
        <TextField label={texts.name} value={draft.name} onChange={name => set({ name })} error={errors.name} />
        <TextField
          label={texts.description}
          rows={2}
          value={draft.description}
          onChange={description => set({ description })}
          error={errors.description}
        />
        <Select
          label={texts.cardinality}
          options={[
            { value: 'one', label: texts.one, isDisabled: isDeclared && draft.cardinality === 'many' },
            { value: 'many', label: texts.many },
          ]}
          help={texts.cardinalityHelp}
          value={draft.cardinality}
          onChange={cardinality => set({ cardinality })}
          error={errors.cardinality}
        />
        <Flag
          isSelected={draft.indexed}
          onChange={indexed => set({ indexed })}
          help={texts.indexedHelp}
          error={errors.indexed}
        >
          {texts.indexed}
        </Flag>
        {draft.type === 'text' && (
          <Flag
            isSelected={draft.searchable}
            onChange={searchable => set({ searchable })}
            help={texts.searchableHelp}
            error={errors.searchable}
          >
            {texts.searchable}
          </Flag>
        )}
      </fieldset>
      <RuleFields draft={draft} set={set} errors={errors} />
    </>
  )
}

type PartProps = Pick<AttributeFieldsProps, 'draft' | 'errors'> & { set: (change: Partial<AttributeDraft>) => void }

function NewAttributeFields({ draft, set, errors, stacks }: PartProps & { stacks: readonly Stack[] }) {
  const texts = useMessages(messages)
  return (
    <>
      <TextField
        label={texts.key}
        help={texts.keyHelp}
        isRequired
        value={draft.key}
        onChange={key => set({ key })}
        error={errors.key}
      />
      <Select
        label={texts.type}
        options={attributeTypes.map(type => ({ value: type, label: texts.types[type] }))}
        value={draft.type}
        onChange={type => set({ type })}
        error={errors.type}
      />
      {draft.type === 'stack' && (
        <Select
          label={texts.target}
          options={stacks.map(({ key, name }) => ({ value: key, label: name === key ? key : `${name} (${key})` }))}
          value={draft.target_stack}
          onChange={target_stack => set({ target_stack })}
          error={errors.target_stack}
        />
      )}
    </>
  )
}

function RuleFields({ draft, set, errors }: PartProps) {
  const texts = useMessages(messages)
  const takes = (rule: RuleName) => takesRule(draft.type, rule)
  return (
    <fieldset className={styles.fields!}>
      <legend>{texts.rules}</legend>
      <p className={styles.muted!}>{texts.rulesHelp}</p>
      <Flag
        isSelected={draft.required}
        onChange={required => set({ required })}
        help={texts.requiredHelp}
        error={errors.required}
      >
        {texts.ruleNames.required}
      </Flag>
      {takes('unique') && (
        <Flag
          isSelected={draft.unique}
          onChange={unique => set({ unique })}
          help={texts.uniqueHelp}
          error={errors.unique}
        >
          {texts.ruleNames.unique}
        </Flag>
      )}
      <ValueRuleFields draft={draft} set={set} errors={errors} />
    </fieldset>
  )
}

/** The rules that a value is checked by alone. */
function ValueRuleFields({ draft, set, errors }: PartProps) {
  const texts = useMessages(messages)
  const takes = (rule: RuleName) => takesRule(draft.type, rule)
  return (
    <>
      {takes('enum') && (
        <TextField
          label={texts.ruleNames.enum}
          help={texts.allowedHelp}
          rows={3}
          value={draft.allowed}
          onChange={allowed => set({ allowed })}
          error={errors.enum}
        />
      )}
      {takes('pattern') && (
        <TextField
          label={texts.ruleNames.pattern}
          help={texts.patternHelp}
          value={draft.pattern}
          onChange={pattern => set({ pattern })}
          error={errors.pattern}
        />
      )}
      {takes('minimum') && (
        <div className={styles.pair!}>
          <TextField
            label={texts.ruleNames.minimum}
            value={draft.minimum}
            onChange={minimum => set({ minimum })}
            error={errors.minimum}
          />
          <TextField
            label={texts.ruleNames.maximum}
            value={draft.maximum}
            onChange={maximum => set({ maximum })}
            error={errors.maximum}
          />
        </div>
      )}
    </>
  )
}

type FlagProps = {
  isSelected: boolean
  onChange: (isSelected: boolean) => void
  help?: string
  error?: string | undefined
  children: ReactNode
}

/** A checkbox with its explanation and its error. */
export function Flag({ isSelected, onChange, help, error, children }: FlagProps) {
  return (
    <div className={styles.flag!}>
      <Checkbox isSelected={isSelected} onChange={onChange} isInvalid={error !== undefined}>
        {children}
      </Checkbox>
      {help && <p className={styles.muted!}>{help}</p>}
      {error && (
        <p className={styles.error!} role="alert">
          {error}
        </p>
      )}
    </div>
  )
}
