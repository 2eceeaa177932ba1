import {
  type FieldType,
  type Filter,
  type FilterGroup,
  type FilterNode,
  newGroup,
  newId,
  type Operator,
  operators,
  type Quantifier,
  quantifiers,
} from './filter-tree.ts'
import { notShown, textOfOperand } from './operand-text.ts'

/** Tells the type of a field, and for a relationship the types of its target's fields. */
export type FieldTypes = { typeOf(field: string): FieldType; targetOf(field: string): FieldTypes | undefined }

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Filter =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a filter into a tree. Parts that the builder has no controls for stay as they are. */
export function readFilter(filter: Filter, types: FieldTypes): FilterGroup {
  const nodes = readMembers(filter, types)
  const [only] = nodes
  return nodes.length === 1 && only!.kind === 'group' ? only! : newGroup('all', nodes)
}

function readMembers(filter: Filter, types: FieldTypes): FilterNode[] {
  return Object.entries(filter).flatMap(([key, operand]) => readMember(key, operand, types))
}

function readMember(key: string, operand: unknown, types: FieldTypes): FilterNode[] {
  const raw: FilterNode[] = [{ id: newId(), kind: 'raw', filter: { [key]: operand } }]
  if (key === '$and' || key === '$or') {
    if (!Array.isArray(operand) || operand.length === 0 || !operand.every(isObject)) return raw
    return [readGroup(key === '$and' ? 'all' : 'any', operand, types)]
  }
  if (key === '$not') {
    if (!isObject(operand)) return raw
    const { $or, ...rest } = operand
    const isList = Array.isArray($or) && $or.length > 0 && $or.every(isObject) && Object.keys(rest).length === 0
    return [readGroup('none', isList ? ($or as Filter[]) : [operand], types)]
  }
  if (key === '$segment') return typeof operand === 'string' ? [{ id: newId(), kind: 'segment', key: operand }] : raw
  if (key === 'consents') return [readConsent(operand) ?? raw[0]!]
  return readField(key, operand, types) ?? raw
}

function readGroup(mode: FilterGroup['mode'], filters: Filter[], types: FieldTypes): FilterGroup {
  const children = filters.map((filter): FilterNode => {
    const nodes = readMembers(filter, types)
    // A filter without conditions matches everything, which a group without conditions would not say.
    if (nodes.length === 0) return { id: newId(), kind: 'raw', filter }
    return nodes.length === 1 ? nodes[0]! : newGroup('all', nodes)
  })
  return newGroup(mode, children)
}

function readConsent(operand: unknown): FilterNode | undefined {
  if (!isObject(operand) || Object.keys(operand).join() !== '$some' || !isObject(operand.$some)) return undefined
  const { consent_type_id = '', channel = '', state = '', ...rest } = operand.$some
  if (Object.keys(rest).length > 0 || Object.keys(operand.$some).length === 0) return undefined
  return {
    id: newId(),
    kind: 'consent',
    consentTypeId: String(consent_type_id),
    channel: String(channel),
    state: String(state),
  }
}

/** The conditions on a field, or undefined if the builder cannot show one of them. */
function readField(field: string, operand: unknown, types: FieldTypes): FilterNode[] | undefined {
  const type = types.typeOf(field)
  const given = isObject(operand) ? operand : { $eq: operand }
  const nodes: FilterNode[] = []
  for (const [name, value] of Object.entries(given)) {
    const quantifier = quantifiers.find(each => `$${each}` === name)
    const node = quantifier ? readRelated(field, quantifier, value, types) : readTest(field, type, name, value)
    if (!node) return undefined
    nodes.push(node)
  }
  return nodes.length > 0 ? nodes : undefined
}

function readRelated(
  field: string,
  quantifier: Quantifier,
  filter: unknown,
  types: FieldTypes,
): FilterNode | undefined {
  const target = types.targetOf(field)
  if (!target || !isObject(filter)) return undefined
  return { id: newId(), kind: 'related', field, quantifier, group: readFilter(filter, target) }
}

function readTest(field: string, type: FieldType, name: string, value: unknown): FilterNode | undefined {
  const test = (operator: Operator, operand: string): FilterNode => ({
    id: newId(),
    kind: 'field',
    field,
    operator,
    operand,
  })
  if (name === '$exists') return typeof value === 'boolean' ? test(value ? 'exists' : 'missing', '') : undefined
  if (value === null && name === '$eq') return test('missing', '')
  if (value === null && name === '$neq') return test('exists', '')
  const operator = operators.find(each => `$${each}` === name)
  if (!operator || operator === 'missing') return undefined
  if (operator === 'in' || operator === 'nin') {
    if (!Array.isArray(value) || value.length === 0) return undefined
    const texts = value.map(element => textOfOperand(type, element))
    const isShown = texts.every(text => text !== notShown && text !== '' && !text.includes('\n'))
    return isShown ? test(operator, texts.join('\n')) : undefined
  }
  const text = textOfOperand(type, value)
  return text === notShown || text === '' ? undefined : test(operator, text)
}
