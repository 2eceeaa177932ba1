import { useMessages } from '../app/language.tsx'
import { useSession } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { ComboBox } from '../ui/combo-box.tsx'
import { Select } from '../ui/select.tsx'
import { attributePrefix, type Owner, targetOfAttribute } from './field-types.ts'
import { type FilterField, isFollowedBack, operatorsOf } from './fields.ts'
import { useFields, useFilterChoices, useMayFollow } from './filter-context.ts'
import {
  type FilterNode,
  type NodeOf,
  newCondition,
  newGroup,
  type Operator,
  type Quantifier,
  quantifiers,
} from './filter-tree.ts'
import { IncomingControls } from './incoming-controls.tsx'
import { messages } from './messages.ts'
import { OperandField } from './operand-field.tsx'
import { OperatorSelect } from './operator-select.tsx'
import { changeOperator } from './relative-time.ts'

/** The name of the subject of a condition, as in the list of fields. */
export const nameOf = (node: FilterNode): string => {
  if ('field' in node) return node.field
  if (node.kind === 'consent') return 'consents'
  if (node.kind === 'contactable' || node.kind === 'deliverability') return node.kind
  return node.kind === 'segment' ? '$segment' : ''
}

type FilterTexts = (typeof messages)['en']

/** The subjects of conditions on people besides their fields. */
export const peopleSubjects = (texts: FilterTexts) => [
  { name: 'contactable', label: texts.contactable },
  { name: 'consents', label: texts.consent },
  { name: 'deliverability', label: texts.deliverability },
  { name: '$segment', label: texts.segment },
]

export type ControlProps<Node> = { owner: Owner; node: Node; onChange(node: FilterNode): void }
type NodeProps<Kind extends FilterNode['kind']> = Omit<ControlProps<NodeOf<Kind>>, 'owner'>
/** A condition that the builder has controls for. */
export type Editable = Exclude<FilterNode, { kind: 'group' | 'raw' }>

/** Chooses the subject of a condition. */
export function SubjectPicker({ owner, node, onChange }: ControlProps<Editable>) {
  const texts = useMessages(messages)
  const { fields } = useFields(owner)
  const { definitions, segments } = useFilterChoices()
  const hasConsents = definitions !== undefined && definitions.consent_types.length > 0
  const { scopes } = useSession()
  const mayFollow = useMayFollow()
  const isOffered = ({ name, type, target }: FilterField) =>
    name === nameOf(node) ||
    (type !== 'incoming' && !followedBack.has(name)) ||
    (type === 'incoming' && mayFollow && scopes.includes(scopesOf(target!).read))
  // A relationship is not offered if its other side, which allows more conditions, may be followed.
  const followedBack = new Set(
    (mayFollow ? (definitions?.attributes ?? []) : [])
      .filter(each => each.owner === owner && scopes.includes(scopesOf(targetOfAttribute(each) ?? owner).read))
      .filter(each => isFollowedBack(each, definitions))
      .map(({ key }) => attributePrefix + key),
  )
  const ofPeople = peopleSubjects(texts).filter(({ name }) =>
    name === '$segment' ? segments.length > 0 : name === 'deliverability' || hasConsents,
  )
  const choices = [...fields.filter(isOffered), ...(owner === 'people' ? ofPeople : [])]
  const choose = (name: string) => {
    const field = fields.find(each => each.name === name)
    if (name !== nameOf(node)) onChange(nodeFor(node.id, name, field, mayFollow))
  }
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

/** The empty condition on a field. It keeps the id of the previous condition, so the focus stays. */
function nodeFor(id: number, name: string, field: FilterField | undefined, mayFollow: boolean): FilterNode {
  if (name === 'consents') return { id, kind: 'consent', consentTypeId: '', channel: '', state: 'true' }
  if (name === 'contactable') return { id, kind: 'contactable', consentTypeId: '', channel: '' }
  if (name === 'deliverability') return { id, kind: name, channel: 'email', state: 'suppressed' }
  if (name === '$segment') return { id, kind: 'segment', key: '' }
  if (field?.type === 'incoming')
    return { id, kind: 'related', field: name, quantifier: 'some', group: newGroup('all') }
  if (field?.type === 'relation' && mayFollow)
    return { id, kind: 'related', field: name, quantifier: 'some', group: newGroup('all', [newCondition()]) }
  const operator = operatorsOf[field?.type ?? 'json'][0]!
  return { id, kind: 'field', field: name, ...changeOperator({ operator, operand: '' }, operator) }
}

/** The controls of a condition, by its subject. */
export function ConditionControls({ owner, node, onChange }: ControlProps<Editable>) {
  const texts = useMessages(messages)
  const { fields } = useFields(owner)
  const { segments } = useFilterChoices()
  if (node.kind === 'consent') return <ConsentFields node={node} onChange={onChange} />
  if (node.kind === 'contactable') return <ContactableFields node={node} onChange={onChange} />
  if (node.kind === 'deliverability') return <DeliverabilityFields node={node} onChange={onChange} />
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
  const { type, target } = fields.find(({ name }) => name === node.field) ?? {}
  if (node.kind !== 'measured' && type !== 'incoming')
    return <FieldControls owner={owner} node={node} onChange={onChange} />
  if (node.kind === 'field' || target === undefined) return null
  return <IncomingControls target={target} node={node} onChange={onChange} />
}

/** The controls for an address, and whether messages reach it. */
function DeliverabilityFields({ node, onChange }: NodeProps<'deliverability'>) {
  const texts = useMessages(messages)
  return (
    <>
      <Select
        aria-label={texts.channel}
        options={texts.addresses}
        value={node.channel || 'any'}
        onChange={channel => onChange({ ...node, channel: channel === 'any' ? '' : channel })}
      />
      <Select
        aria-label={texts.state}
        options={texts.addressStates}
        value={node.state}
        onChange={state => onChange({ ...node, state })}
      />
    </>
  )
}

/** The operator and the operand of a condition on a field, or how many targets of a relationship match. */
function FieldControls({ owner, node, onChange }: ControlProps<NodeOf<'field'> | NodeOf<'related'>>) {
  const { fields, types } = useFields(owner)
  const mayFollow = useMayFollow()
  const field = fields.find(({ name }) => name === node.field)
  const type = types.typeOf(node.field)
  const choose = (chosen: Operator | Quantifier) => {
    const { id, field } = node
    if (chosen === 'some' || chosen === 'none' || chosen === 'every') {
      const group = node.kind === 'related' ? node.group : newGroup('all', [newCondition()])
      return onChange({ id, kind: 'related', field, quantifier: chosen, group })
    }
    const test = changeOperator(node.kind === 'field' ? node : { operator: 'eq', operand: '' }, chosen)
    onChange({ id, kind: 'field', field, ...test })
  }
  return (
    <>
      <OperatorSelect<Operator | Quantifier>
        type={type}
        field={node.field}
        quantifiers={type === 'relation' && mayFollow ? quantifiers : []}
        value={node.kind === 'field' ? node.operator : node.quantifier}
        onChange={choose}
      />
      {node.kind === 'field' && (
        <OperandField
          {...{ owner, field, type }}
          operator={node.operator}
          operand={node.operand}
          onChange={operand => onChange({ ...node, operand })}
        />
      )}
    </>
  )
}

/** The value for no choice. A list cannot have an empty value. */
const any = 'any'

/** The purpose, the channel and the state of a consent. */
function ConsentFields({ node, onChange }: NodeProps<'consent'>) {
  const texts = useMessages(messages)
  const { purposes, channels, withPurpose } = useQuestion(node)
  const chosen = (value: string) => (value === any ? '' : value)
  return (
    <>
      <Select
        aria-label={texts.purpose}
        options={[{ value: any, label: texts.anyPurpose }, ...purposes]}
        value={node.consentTypeId || any}
        onChange={value => onChange(withPurpose(chosen(value)))}
      />
      <Select
        aria-label={texts.channel}
        options={[{ value: any, label: texts.anyChannel }, ...channels]}
        value={node.channel || any}
        onChange={value => onChange({ ...node, channel: chosen(value) })}
      />
      <Select
        aria-label={texts.consentState}
        options={{ true: texts.granted, false: texts.refused, pending: texts.pending, [any]: texts.anyState }}
        value={node.state || any}
        onChange={value => onChange({ ...node, state: chosen(value) })}
      />
    </>
  )
}

/** The purpose and the channel for which people may be contacted. */
function ContactableFields({ node, onChange }: NodeProps<'contactable'>) {
  const texts = useMessages(messages)
  const { purposes, channels, withPurpose } = useQuestion(node)
  return (
    <>
      <Select
        aria-label={texts.purpose}
        placeholder={texts.choosePurpose}
        options={purposes}
        value={node.consentTypeId || null}
        onChange={value => onChange(withPurpose(value))}
      />
      <Select
        aria-label={texts.channel}
        placeholder={texts.chooseChannel}
        options={channels}
        value={node.channel || null}
        onChange={channel => onChange({ ...node, channel })}
      />
    </>
  )
}

/**
 * The active purposes, and the channels of the chosen purpose, or of all. A channel that the next purpose lacks is not
 * kept.
 */
function useQuestion<Node extends { consentTypeId: string; channel: string }>(node: Node) {
  const texts = useMessages(messages)
  const { definitions } = useFilterChoices()
  const active = (definitions?.consent_types ?? []).filter(({ state }) => state === 'active')
  const purposeWith = (value: string) => active.find(({ id }) => String(id) === value)
  const purpose = purposeWith(node.consentTypeId)
  const channels = new Set((purpose ? [purpose] : active).flatMap(each => each.channels.map(({ channel }) => channel)))
  const withPurpose = (consentTypeId: string): Node => {
    const next = purposeWith(consentTypeId)
    const hasChannel = !next || next.channels.some(({ channel }) => channel === node.channel)
    return { ...node, consentTypeId, channel: hasChannel ? node.channel : '' }
  }
  return {
    purposes: active.map(({ id, name }) => ({ value: String(id), label: name })),
    channels: [...channels].map(value => ({ value: value as string, label: texts.channels[value] })),
    withPurpose,
  }
}
