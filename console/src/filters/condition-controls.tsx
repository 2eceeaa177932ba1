import { useMessages } from '../app/language.tsx'
import { ComboBox } from '../ui/combo-box.tsx'
import { Select } from '../ui/select.tsx'
import { ConsentFields } from './consent-fields.tsx'
import type { Owner } from './field-types.ts'
import { type FilterField, operatorsOf, quantifiersOfRelation } from './fields.ts'
import { useFields, useFilterChoices } from './filter-context.ts'
import {
  type FieldType,
  type FilterNode,
  type NodeOf,
  newCondition,
  newGroup,
  type Operator,
  type Quantifier,
} from './filter-tree.ts'
import { messages } from './messages.ts'
import { OperandField } from './operand-field.tsx'

/** The name of what a condition tests, as the list of fields has it. */
export const nameOf = (node: FilterNode): string => {
  if (node.kind === 'field' || node.kind === 'related') return node.field
  if (node.kind === 'consent') return 'consents'
  return node.kind === 'segment' ? '$segment' : ''
}

export type ControlProps<Node> = { owner: Owner; node: Node; onChange(node: FilterNode): void }
/** A condition that the builder has controls for. */
export type Editable = Exclude<FilterNode, { kind: 'group' | 'raw' }>

/** Chooses what a condition tests. */
export function SubjectPicker({ owner, node, onChange }: ControlProps<Editable>) {
  const texts = useMessages(messages)
  const { fields } = useFields(owner)
  const { definitions, segments } = useFilterChoices()
  const hasConsents = owner === 'people' && definitions !== undefined && definitions.consent_types.length > 0
  const choices = [
    ...fields,
    ...(hasConsents ? [{ name: 'consents', label: texts.consent }] : []),
    ...(owner === 'people' && segments.length > 0 ? [{ name: '$segment', label: texts.segment }] : []),
  ]
  const choose = (name: string) => name !== nameOf(node) && onChange(nodeFor(node.id, name, fields))
  return (
    <ComboBox
      label={texts.field}
      placeholder={texts.chooseField}
      choices={choices}
      value={nameOf(node)}
      onChange={choose}
    />
  )
}

/** The empty condition on a field. It keeps the id of the one before, so the focus stays. */
function nodeFor(id: number, name: string, fields: readonly FilterField[]): FilterNode {
  if (name === 'consents') return { id, kind: 'consent', consentTypeId: '', channel: '', state: 'true' }
  if (name === '$segment') return { id, kind: 'segment', key: '' }
  const field = fields.find(each => each.name === name)
  if (field?.type === 'relation')
    return { id, kind: 'related', field: name, quantifier: 'some', group: newGroup('all', [newCondition()]) }
  return { id, kind: 'field', field: name, operator: operatorsOf[field?.type ?? 'json'][0]!, operand: '' }
}

/** The operator of a condition and its operand. */
export function ConditionControls({ owner, node, onChange }: ControlProps<Editable>) {
  const texts = useMessages(messages)
  const { fields, types } = useFields(owner)
  const { segments } = useFilterChoices()
  if (node.kind === 'consent') return <ConsentFields node={node} onChange={onChange} />
  if (node.kind === 'segment')
    return (
      <Select
        aria-label={texts.isIn}
        placeholder={texts.chooseSegment}
        options={segments.map(({ key, name }) => ({ value: key, label: name }))}
        value={node.key || null}
        onChange={key => onChange({ ...node, key })}
      />
    )
  if (node.field === '') return null
  const field = fields.find(({ name }) => name === node.field)
  const type = types.typeOf(node.field)
  return (
    <>
      <OperatorSelect type={type} node={node} onChange={onChange} />
      {node.kind === 'field' && (
        <OperandField
          {...{ field, type }}
          operator={node.operator}
          operand={node.operand}
          onChange={operand => onChange({ ...node, operand })}
        />
      )}
    </>
  )
}

function OperatorSelect({
  type,
  node,
  onChange,
}: {
  type: FieldType
  node: NodeOf<'field'> | NodeOf<'related'>
  onChange(node: FilterNode): void
}) {
  const texts = useMessages(messages)
  const isTime = type === 'date' || type === 'datetime'
  const current = node.kind === 'field' ? node.operator : node.quantifier
  const operators = operatorsOf[type]
  // A filter that was typed as JSON may use an operator that the list does not offer.
  const offered =
    node.kind === 'field' && !operators.includes(node.operator) ? [...operators, node.operator] : operators
  const choices = [
    ...(type === 'relation' ? quantifiersOfRelation : []).map(value => ({ value, label: texts.quantifiers[value] })),
    ...offered.map(value => ({
      value,
      label: isTime && value in texts.timeOperators ? texts.timeOperators[value as 'gt'] : texts.operators[value],
    })),
  ]
  const choose = (chosen: Operator | Quantifier) => {
    const { id, field } = node
    if (chosen === 'some' || chosen === 'none' || chosen === 'every') {
      const group = node.kind === 'related' ? node.group : newGroup('all', [newCondition()])
      return onChange({ id, kind: 'related', field, quantifier: chosen, group })
    }
    onChange({ id, kind: 'field', field, operator: chosen, operand: node.kind === 'field' ? node.operand : '' })
  }
  return (
    <Select<Operator | Quantifier> aria-label={texts.operator} options={choices} value={current} onChange={choose} />
  )
}
