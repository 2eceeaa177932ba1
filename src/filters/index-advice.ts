import { type Detail, Fault, pointer } from '../errors.ts'
import { type Attribute, type Definitions, isRelationship } from '../organizations/definitions.ts'
import { fieldOf } from './fields.ts'
import { Parameter } from './fragment.ts'
import { incomingAttribute, incomingPrefix } from './incoming.ts'
import { selectTerms } from './index-candidates.ts'
import { operandTypeOf } from './operand-types.ts'
import { operandFromQuery, testFrom } from './operands.ts'

/** A part of a filter, its path, and the stack whose fields it names. All operands of a query string are texts. */
type Part = { value: unknown; stackId: number; path: readonly (string | number)[]; boundFrom: 'body' | 'query' }

/** Adds advice to a 504 of a filter: which attributes to index, or which condition to add. Other errors are unchanged. */
export function withIndexAdvice(error: unknown, filter: Omit<Part, 'path'>, definitions: Definitions): unknown {
  if (!(error instanceof Fault) || error.refusal.status !== 504) return error
  const details = adviceOn({ ...filter, path: ['filter'] }, definitions)
  const advice =
    details.length > 0
      ? 'Index the attributes that the details name.'
      : 'Add a condition that an index serves: on an indexed attribute, the email, or an identifier.'
  return new Fault({ ...error.refusal, message: `${error.refusal.message} ${advice}`, details }, { cause: error })
}

/** Lists the conditions that an index would answer but none does. No index helps under `$not`, `$none` and `$every`. */
function adviceOn(part: Part, definitions: Definitions): Detail[] {
  const { value, stackId, path } = part
  return entriesOf(value).flatMap(([name, operand]) => {
    const memberPath = [...path, name]
    if (name === '$and' || name === '$or')
      return entriesOf(operand).flatMap(([index, filter]) =>
        adviceOn({ ...part, value: filter, path: [...memberPath, index] }, definitions),
      )
    if (name === '$segment') {
      const { filter } = definitions.segments.find(({ key }) => key === operand) ?? {}
      const advice = adviceOn({ value: filter, stackId, path: [], boundFrom: 'body' }, definitions)
      return advice.map(detail => ({
        path: pointer(...memberPath),
        message: `in the segment, at ${detail.path}: ${detail.message}`,
      }))
    }
    if (name.startsWith(incomingPrefix))
      return adviceOnIncoming(name, { ...part, value: operand, path: memberPath }, definitions)
    const field = fieldOf(name, stackId)
    const attribute = field?.kind === 'attribute' ? definitions.declared.get(stackId)?.get(field.key) : undefined
    return attribute ? adviceOnAttribute(attribute, { ...part, value: operand, path: memberPath }, definitions) : []
  })
}

function adviceOnIncoming(name: string, part: Part, definitions: Definitions): Detail[] {
  const attribute = incomingAttribute(name.slice(incomingPrefix.length), definitions, part.stackId)
  if (typeof attribute === 'string') return []
  return entriesOf(part.value)
    .filter(([operator]) => operator === '$some' || operator === '$where')
    .flatMap(([operator, value]) =>
      adviceOn({ ...part, value, stackId: attribute.owner_stack_id, path: [...part.path, operator] }, definitions),
    )
}

function adviceOnAttribute(attribute: Attribute, part: Part, definitions: Definitions): Detail[] {
  const { value, path, boundFrom } = part
  const operators = typeof value === 'object' && value !== null ? entriesOf(value) : ([['$eq', value]] as const)
  if (isRelationship(attribute)) {
    const some = operators.find(([operator]) => operator === '$some')
    return adviceOn(
      { ...part, value: some?.[1], stackId: attribute.target_stack_id, path: [...path, '$some'] },
      definitions,
    )
  }
  if (attribute.index?.ready || attribute.type === 'json') return []
  const type = operandTypeOf({ kind: 'attribute', key: attribute.key }, definitions, attribute.owner_stack_id)
  const clock = { nowMs: Date.now(), timeZone: definitions.time_zone }
  const tests = operators.flatMap(([operator, operand]) => {
    const typed = boundFrom === 'query' ? operandFromQuery(type, operator, operand) : operand
    const test = testFrom(type, operator, typed, clock)
    return 'fault' in test ? [] : [test]
  })
  // The tests are compiled as if the attribute had an index, to see whether one would help.
  const indexed = { ...attribute, index: { id: 0, ready: true, indexed: 0, total: 0 } }
  if (!selectTerms(indexed, tests, new Parameter(definitions.organization_id))) return []
  const message = attribute.index
    ? 'the index of this attribute is still being filled: GET /v1/schema/attributes shows how far it is'
    : `this attribute is not indexed: PATCH /v1/schema/attributes/${attribute.id} {"indexed": true}`
  return [{ path: pointer(...path), message }]
}

const entriesOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : []
