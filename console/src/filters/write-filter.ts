import type { Filter, FilterGroup, FilterNode, NodeOf } from './filter-tree.ts'
import { linesOf, operandOfText } from './operand-text.ts'
import { type FieldTypes, isObject } from './read-filter.ts'

/** The filter that a tree stands for. Conditions that are not complete are left out. */
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

/** Joins filters in one object if none of their members is in the way of another. */
function combine(filters: Filter[]): Filter {
  const joined: Filter = {}
  for (const [name, operand] of filters.flatMap(Object.entries)) {
    const before = joined[name]
    if (before === undefined) joined[name] = operand
    else if (canJoin(name, before, operand)) joined[name] = { ...(before as Filter), ...(operand as Filter) }
    else return { $and: filters }
  }
  return joined
}

/** Whether two operands of a field are operators with different names. */
function canJoin(name: string, one: unknown, other: unknown): boolean {
  if (name.startsWith('$') || name === 'consents' || !isObject(one) || !isObject(other)) return false
  return Object.keys(one).every(operator => !Object.hasOwn(other, operator))
}

function writeNode(node: FilterNode, types: FieldTypes): Filter | undefined {
  switch (node.kind) {
    case 'group':
      return writeGroup(node, types)
    case 'field':
      return writeTest(node, types)
    case 'related': {
      const target = types.targetOf(node.field)
      return target && { [node.field]: { [`$${node.quantifier}`]: writeFilter(node.group, target) } }
    }
    case 'consent':
      return writeConsent(node)
    case 'segment':
      return node.key === '' ? undefined : { $segment: node.key }
    case 'raw':
      return node.filter
  }
}

function writeTest({ field, operator, operand }: NodeOf<'field'>, types: FieldTypes): Filter | undefined {
  if (field === '') return undefined
  if (operator === 'exists' || operator === 'missing') return { [field]: { $exists: operator === 'exists' } }
  const type = types.typeOf(field)
  if (operator === 'in' || operator === 'nin') {
    const values = linesOf(operand).map(line => operandOfText(type, line))
    return values.length === 0 || values.includes(undefined) ? undefined : { [field]: { [`$${operator}`]: values } }
  }
  const value = operandOfText(type, operand)
  if (value === undefined) return undefined
  return { [field]: operator === 'eq' ? value : { [`$${operator}`]: value } }
}

function writeConsent({ consentTypeId, channel, state }: NodeOf<'consent'>): Filter | undefined {
  if (consentTypeId === '' && channel === '' && state === '') return undefined
  return {
    consents: {
      $some: {
        ...(consentTypeId !== '' && { consent_type_id: Number(consentTypeId) }),
        ...(channel !== '' && { channel }),
        ...(state !== '' && { state: state === 'true' }),
      },
    },
  }
}
