import { incomingPrefix } from './field-types.ts'
import type { FieldType, Filter, FilterGroup, FilterNode, NodeOf, Test } from './filter-tree.ts'
import { linesOf, operandOfText } from './operand-text.ts'
import { type FieldTypes, isObject, operatorsIn, quantifierOf } from './read-filter.ts'
import { isPeriod, writePeriod } from './relative-time.ts'

/** The filter of a tree, without incomplete conditions. */
export function writeFilter(group: FilterGroup, types: FieldTypes): Filter {
  return writeGroup(group, types) ?? {}
}

function writeGroup({ mode, children }: FilterGroup, types: FieldTypes): Filter | undefined {
  const filters = children.map(child => writeNode(child, types)).filter(filter => filter !== undefined)
  if (filters.length === 0) return undefined
  if (mode === 'all') return combine(filters)
  if (mode === 'any') return filters.length === 1 ? filters[0]! : { $or: filters }
  return { $not: filters.length === 1 ? filters[0]! : { $or: filters } }
}

/** Joins filters in one object if their members do not conflict. */
function combine(filters: Filter[]): Filter {
  const joined: Filter = {}
  for (const [name, operand] of filters.flatMap(Object.entries)) {
    const both = Object.hasOwn(joined, name) ? joinOperands(name, joined[name], operand) : operand
    if (both === undefined) return { $and: filters }
    joined[name] = both
  }
  return joined
}

/** Joins two operands of a field, or returns undefined if they need two conditions. */
function joinOperands(name: string, one: unknown, other: unknown): unknown {
  if (name.startsWith('$') || ['consents', 'contactable', 'deliverability'].includes(name)) return undefined
  const [first, second] = [operatorsIn(one), operatorsIn(other)]
  if (!name.startsWith(incomingPrefix)) {
    const joined = join(first, second)
    return joined && shortest(joined)
  }
  const isSameSelection =
    [first, second].some(({ $where, ...members }) => Object.keys(members).every(quantifierOf)) ||
    JSON.stringify(first.$where) === JSON.stringify(second.$where)
  return isSameSelection ? join(first, second, joinMeasures) : undefined
}

type JoinMembers = (name: string, one: unknown, other: unknown) => unknown

/** Joins two operands of the same operator if they are equal. */
const joinEqual: JoinMembers = (_, one, other) => (JSON.stringify(one) === JSON.stringify(other) ? one : undefined)

/**
 * Joins the members of two objects. `joinMembers` joins two members of the same name, or returns undefined if that is
 * impossible.
 */
function join(one: Filter, other: Filter, joinMembers = joinEqual): Filter | undefined {
  const joined = { ...one }
  for (const [name, operand] of Object.entries(other)) {
    const both = Object.hasOwn(joined, name) ? joinMembers(name, joined[name], operand) : operand
    if (both === undefined) return undefined
    joined[name] = both
  }
  return joined
}

const joinTests: JoinMembers = (_, one, other) => join(operatorsIn(one), operatorsIn(other))

function joinMeasures(name: string, one: unknown, other: unknown): unknown {
  if (name === '$where') return one
  if (name === '$count') return joinTests(name, one, other)
  return !quantifierOf(name) && isObject(one) && isObject(other) ? join(one, other, joinTests) : undefined
}

function writeNode(node: FilterNode, types: FieldTypes): Filter | undefined {
  switch (node.kind) {
    case 'group':
      return writeGroup(node, types)
    case 'field': {
      const tests = node.field === '' ? undefined : writeTest(node.field, types.typeOf(node.field), node)
      return tests === undefined ? undefined : { [node.field]: tests }
    }
    case 'related': {
      const target = types.targetOf(node.field)
      return target && { [node.field]: { [`$${node.quantifier}`]: writeFilter(node.group, target) } }
    }
    case 'measured':
      return writeMeasured(node, types)
    case 'consent':
      return writeConsent(node)
    case 'contactable':
      return writeContactable(node)
    case 'deliverability':
      return { deliverability: { $some: { ...(node.channel && { channel: node.channel }), state: node.state } } }
    case 'segment':
      return node.key === '' ? undefined : { $segment: node.key }
    case 'raw':
      return node.filter
  }
}

function writeMeasured(node: NodeOf<'measured'>, types: FieldTypes): Filter | undefined {
  const { field, measure, of, group } = node
  const target = types.targetOf(field)
  const isCount = measure === 'count'
  if (!target || (!isCount && of === '')) return undefined
  const tests = writeTest(of, isCount ? 'number' : target.typeOf(of), node)
  if (tests === undefined) return undefined
  const $where = writeGroup(group, target)
  return { [field]: { [`$${measure}`]: isCount ? tests : { [of]: tests }, ...($where && { $where }) } }
}

/** The operand that tests a field, or undefined if the test is not complete. */
function writeTest(field: string, type: FieldType, test: Test): unknown {
  const { operator, operand } = test
  if (isPeriod(operator)) return writePeriod(field, type, test)
  if (operator === 'exists' || operator === 'missing') return { $exists: operator === 'exists' }
  if (operator === 'in' || operator === 'nin') {
    const values = linesOf(operand).map(line => operandOfText(type, line))
    return values.length === 0 || values.includes(undefined) ? undefined : { [`$${operator}`]: values }
  }
  const value = operandOfText(type, operand)
  if (value === undefined) return undefined
  return shortest({ [`$${operator}`]: value })
}

/** An operand in its shortest form: the value itself for `$eq` alone, unless it is an object. */
function shortest(tests: Filter): unknown {
  const { $eq, ...others } = tests
  return $eq === undefined || isObject($eq) || Object.keys(others).length > 0 ? tests : $eq
}

function writeContactable({ consentTypeId, channel }: NodeOf<'contactable'>): Filter | undefined {
  if (consentTypeId === '' || channel === '') return undefined
  return { contactable: { consent_type_id: Number(consentTypeId), channel } }
}

function writeConsent({ consentTypeId, channel, state }: NodeOf<'consent'>): Filter | undefined {
  if (consentTypeId === '' && channel === '' && state === '') return undefined
  return {
    consents: {
      $some: {
        ...(consentTypeId !== '' && { consent_type_id: Number(consentTypeId) }),
        ...(channel !== '' && { channel }),
        ...(state === 'pending' ? { pending: true } : state !== '' && { state: state === 'true' }),
      },
    },
  }
}
