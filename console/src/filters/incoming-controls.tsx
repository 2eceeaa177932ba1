import { useMessages } from '../app/language.tsx'
import { ComboBox } from '../ui/combo-box.tsx'
import { Select } from '../ui/select.tsx'
import type { Owner } from './field-types.ts'
import { type FilterField, isMeasurable, operatorsOf, operatorsOfCount } from './fields.ts'
import { useFields } from './filter-context.ts'
import {
  type FieldType,
  type FilterNode,
  type Measure,
  type NodeOf,
  newCondition,
  newGroup,
  type Quantifier,
  quantifiers,
  type Test,
} from './filter-tree.ts'
import { messages } from './messages.ts'
import { OperandField } from './operand-field.tsx'
import { OperatorSelect } from './operator-select.tsx'
import { changeOperator } from './relative-time.ts'

type IncomingNode = NodeOf<'related'> | NodeOf<'measured'>
type IncomingProps = { target: Owner; node: IncomingNode; onChange(node: FilterNode): void }

/**
 * Chooses the condition on the entities that link here: their existence, their number, or a measure of one of their
 * fields.
 */
export function IncomingControls({ target, node, onChange }: IncomingProps) {
  const texts = useMessages(messages)
  const { fields } = useFields(target)
  const choose = (chosen: Quantifier | Measure) => onChange(nodeFor(chosen, node, fields))
  return (
    <>
      <Select<Quantifier | Measure>
        aria-label={texts.question}
        options={texts.incomingQuestions}
        value={node.kind === 'related' ? node.quantifier : node.measure}
        onChange={choose}
      />
      {node.kind === 'measured' && <MeasureControls target={target} node={node} onChange={onChange} />}
    </>
  )
}

const isQuantifier = (value: string): value is Quantifier => quantifiers.some(each => each === value)

/** The condition with another quantifier or measure. It keeps the entered values that still apply. */
function nodeFor(chosen: Quantifier | Measure, node: IncomingNode, fields: readonly FilterField[]): FilterNode {
  const { id, field, group } = node
  if (isQuantifier(chosen)) {
    // "All of them" has a meaning only with a condition.
    const isEmpty = chosen === 'every' && group.children.length === 0
    const conditions = isEmpty ? newGroup('all', [newCondition()]) : group
    return { id, kind: 'related', field, quantifier: chosen, group: conditions }
  }
  const measurable = fields.filter(each => isMeasurable(chosen, each))
  const before = node.kind === 'measured' ? measurable.find(({ name }) => name === node.of) : undefined
  const measured = before ?? (measurable.length === 1 ? measurable[0] : undefined)
  const type = measured?.type ?? 'number'
  const test = node.kind === 'measured' && operatorsOf[type].includes(node.operator) ? node : firstTest(type)
  const { operator, operand } = test
  return { id, kind: 'measured', field, measure: chosen, of: measured?.name ?? '', operator, operand, group }
}

/** The usual first test: a number is at least a bound, and a time is in a span. */
function firstTest(type: FieldType): Test {
  const operator = type === 'number' ? 'gte' : operatorsOf[type][0]!
  return changeOperator({ operator, operand: '' }, operator)
}

/** The operators of a measure. The anniversary of a latest date has no use. */
const operatorsOfMeasure = (type: FieldType) => operatorsOf[type].filter(operator => operator !== 'anniversary')

function MeasureControls({ target, node, onChange }: IncomingProps & { node: NodeOf<'measured'> }) {
  const texts = useMessages(messages)
  const { fields, types } = useFields(target)
  const { measure, of } = node
  const isCount = measure === 'count'
  const type = isCount ? 'number' : types.typeOf(of)
  const chooseField = (name: string) => {
    const next = types.typeOf(name)
    onChange({ ...node, of: name, ...(next !== type && firstTest(next)) })
  }
  return (
    <>
      {!isCount && (
        <ComboBox
          label={texts.measuredField}
          placeholder={texts.chooseField}
          choices={fields.filter(field => isMeasurable(measure, field))}
          value={of}
          onChange={chooseField}
        />
      )}
      {(isCount || of !== '') && (
        <>
          <OperatorSelect
            type={type}
            operators={isCount ? operatorsOfCount : operatorsOfMeasure(type)}
            value={node.operator}
            onChange={operator => onChange({ ...node, ...changeOperator(node, operator) })}
          />
          <OperandField
            {...{ type, owner: target, field: undefined }}
            operator={node.operator}
            operand={node.operand}
            onChange={operand => onChange({ ...node, operand })}
          />
        </>
      )}
    </>
  )
}
