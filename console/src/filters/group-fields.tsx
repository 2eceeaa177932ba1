import { useContext } from 'react'
import { useMessages } from '../app/language.tsx'
import { ownerName } from '../entity/address.ts'
import { Button } from '../ui/button.tsx'
import fieldStyles from '../ui/field.module.css'
import { Icon } from '../ui/icon.tsx'
import { Select } from '../ui/select.tsx'
import { ConditionControls, type ControlProps, nameOf, peopleSubjects, SubjectPicker } from './condition-controls.tsx'
import type { Owner } from './field-types.ts'
import styles from './filter.module.css'
import { HopsContext, useFields, useFilterChoices } from './filter-context.ts'
import {
  type FilterGroup,
  type FilterNode,
  type GroupMode,
  type NodeOf,
  newCondition,
  newGroup,
} from './filter-tree.ts'
import { messages } from './messages.ts'

type GroupFieldsProps = {
  owner: Owner
  group: FilterGroup
  label?: string
  onChange(group: FilterGroup): void
  /** Absent for the group that holds the whole filter. */
  onRemove?: () => void
}

/** A group of conditions: how they combine, and the conditions. */
export function GroupFields({ owner, group, label, onChange, onRemove }: GroupFieldsProps) {
  const texts = useMessages(messages)
  const { mode, children } = group
  const change = (next: FilterNode[]) => onChange({ ...group, children: next })
  const isNested = onRemove !== undefined || label !== undefined
  return (
    <fieldset className={isNested ? styles.nested : styles.group} aria-label={label ?? texts.group}>
      {label && <p className={fieldStyles.label}>{label}</p>}
      <div className={styles.groupHead}>
        {(children.length > 0 || !label) && (
          <Select<GroupMode>
            aria-label={texts.combine}
            options={texts.modes}
            value={mode}
            onChange={value => onChange({ ...group, mode: value })}
          />
        )}
        {onRemove && (
          <Button look="quiet" aria-label={texts.remove(texts.group)} onPress={onRemove}>
            <Icon name="close" />
          </Button>
        )}
      </div>
      {children.length === 0 && !isNested && <p className="small">{texts.noConditions}</p>}
      {children.map((child, index) => (
        <ConditionRow
          key={child.id}
          owner={owner}
          node={child}
          onChange={next => change(children.with(index, next))}
          onRemove={() => change(children.toSpliced(index, 1))}
        />
      ))}
      <div className="row">
        <Button onPress={() => change([...children, newCondition()])}>{texts.addCondition}</Button>
        <Button look="quiet" onPress={() => change([...children, newGroup('any', [newCondition()])])}>
          {texts.addGroup}
        </Button>
      </div>
    </fieldset>
  )
}

/** A condition: what it tests, how, and against which value. */
function ConditionRow({ owner, node, onChange, onRemove }: ControlProps<FilterNode> & { onRemove(): void }) {
  const texts = useMessages(messages)
  const { fields } = useFields(owner)
  const name = nameOf(node)
  const label = [...fields, ...peopleSubjects(texts)].find(field => field.name === name)?.label ?? name
  if (node.kind === 'group') return <GroupFields owner={owner} group={node} onChange={onChange} onRemove={onRemove} />
  return (
    <fieldset className={styles.condition} aria-label={`${texts.condition} ${label}`}>
      <div className={styles.row}>
        <div className={styles.controls}>
          {node.kind === 'raw' ? (
            <div className={styles.raw}>
              <code>{JSON.stringify(node.filter)}</code>
              <p className="small">{texts.rawHelp}</p>
            </div>
          ) : (
            <>
              <SubjectPicker owner={owner} node={node} onChange={onChange} />
              <ConditionControls owner={owner} node={node} onChange={onChange} />
            </>
          )}
        </div>
        <Button look="quiet" aria-label={texts.remove(`${texts.condition} ${label}`)} onPress={onRemove}>
          <Icon name="close" />
        </Button>
      </div>
      {(node.kind === 'related' || node.kind === 'measured') && (
        <LinkedConditions owner={owner} node={node} onChange={onChange} />
      )}
    </fieldset>
  )
}

/** The conditions on the entities at the other end of a relationship. */
function LinkedConditions({ owner, node, onChange }: ControlProps<NodeOf<'related'> | NodeOf<'measured'>>) {
  const texts = useMessages(messages)
  const { definitions } = useFilterChoices()
  const { fields } = useFields(owner)
  const hops = useContext(HopsContext)
  const { type, target } = fields.find(({ name }) => name === node.field) ?? {}
  if (target === undefined) return null
  const label =
    type === 'incoming'
      ? texts.onlyWhere(ownerName(target, definitions, texts.people))
      : texts.conditionsOnTarget(ownerName(target, definitions, texts.ofPeople))
  return (
    <HopsContext value={hops + 1}>
      <GroupFields owner={target} label={label} group={node.group} onChange={group => onChange({ ...node, group })} />
    </HopsContext>
  )
}
