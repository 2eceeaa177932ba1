import {
  comparisons,
  type FieldType,
  type Filter,
  type FilterGroup,
  type FilterNode,
  measurableTypes,
  measures,
  newGroup,
  newId,
  type Quantifier,
  quantifiers,
  type Test,
} from './filter-tree.ts'
import { notShown, textOfOperand } from './operand-text.ts'
import { readPeriod, relativeOperands } from './relative-time.ts'

/** Returns the type of a field, and for a relationship the types of its target's fields. */
export type FieldTypes = { typeOf(field: string): FieldType; targetOf(field: string): FieldTypes | undefined }

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Filter =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a filter into a tree. Parts without controls in the builder stay unchanged. */
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
  if (key === 'contactable') return [readContactable(operand) ?? raw[0]!]
  if (key === 'deliverability') return [readDeliverability(operand) ?? raw[0]!]
  return readField(key, operand, types) ?? raw
}

function readGroup(mode: FilterGroup['mode'], filters: Filter[], types: FieldTypes): FilterGroup {
  const children = filters.map((filter): FilterNode => {
    const nodes = readMembers(filter, types)
    // A filter without conditions matches everything. An empty group would not express that.
    if (nodes.length === 0) return { id: newId(), kind: 'raw', filter }
    return nodes.length === 1 ? nodes[0]! : newGroup('all', nodes)
  })
  return newGroup(mode, children)
}

function readConsent(operand: unknown): FilterNode | undefined {
  if (!isObject(operand) || Object.keys(operand).join() !== '$some' || !isObject(operand.$some)) return undefined
  const { consent_type_id = '', channel = '', state = '', pending, ...rest } = operand.$some
  if (Object.keys(rest).length > 0 || Object.keys(operand.$some).length === 0) return undefined
  if (pending !== undefined && (pending !== true || state !== '')) return undefined
  return {
    id: newId(),
    kind: 'consent',
    consentTypeId: String(consent_type_id),
    channel: String(channel),
    state: pending ? 'pending' : String(state),
  }
}

function readContactable(operand: unknown): FilterNode | undefined {
  if (!isObject(operand) || Object.keys(operand).sort().join() !== 'channel,consent_type_id') return undefined
  const { consent_type_id, channel } = operand
  return { id: newId(), kind: 'contactable', consentTypeId: String(consent_type_id), channel: String(channel) }
}

function readDeliverability(operand: unknown): FilterNode | undefined {
  if (!isObject(operand) || Object.keys(operand).join() !== '$some' || !isObject(operand.$some)) return undefined
  const { channel = '', state, ...rest } = operand.$some
  if (Object.keys(rest).length > 0) return undefined
  if (
    (channel !== '' && channel !== 'email' && channel !== 'sms') ||
    (state !== 'suppressed' && state !== 'deliverable')
  )
    return undefined
  return { id: newId(), kind: 'deliverability', channel, state }
}

/** The conditions on a field, or undefined if the builder cannot show one of them. */
function readField(field: string, operand: unknown, types: FieldTypes): FilterNode[] | undefined {
  const type = types.typeOf(field)
  if (type === 'incoming') return isObject(operand) ? readIncoming(field, operand, types.targetOf(field)!) : undefined
  const tested: Filter = {}
  const nodes: (FilterNode | undefined)[] = []
  for (const [name, value] of Object.entries(operatorsIn(operand))) {
    const quantifier = quantifierOf(name)
    if (quantifier) nodes.push(readRelated(field, quantifier, value, types.targetOf(field)))
    else tested[name] = value
  }
  const tests = readTests(field, type, tested)
  if (!tests || nodes.includes(undefined) || tests.length + nodes.length === 0) return undefined
  return [...tests.map(test => ({ id: newId(), kind: 'field' as const, field, ...test })), ...(nodes as FilterNode[])]
}

/** The operators of an operand. A plain value and a relative time mean equality. */
export const operatorsIn = (operand: unknown): Filter =>
  isObject(operand) && !relativeOperands.some(name => Object.hasOwn(operand, name)) ? operand : { $eq: operand }

/** The quantifier with this name in the API. */
export const quantifierOf = (name: string) => quantifiers.find(each => `$${each}` === name)

function readRelated(
  field: string,
  quantifier: Quantifier,
  filter: unknown,
  target: FieldTypes | undefined,
): FilterNode | undefined {
  if (!target || !isObject(filter)) return undefined
  return { id: newId(), kind: 'related', field, quantifier, group: readFilter(filter, target) }
}

/** The conditions on the entities that link here: one for each quantifier, and one for each test of a measure. */
function readIncoming(field: string, operand: Filter, target: FieldTypes): FilterNode[] | undefined {
  const { $where, ...members } = operand
  if ($where !== undefined && !isObject($where)) return undefined
  const nodes: FilterNode[] = []
  for (const [name, value] of Object.entries(members)) {
    const quantifier = quantifierOf(name)
    const read = quantifier
      ? [readRelated(field, quantifier, value, target)]
      : readMeasures(name, value, target)?.map(
          (each): FilterNode => ({
            ...{ id: newId(), kind: 'measured', field, group: readFilter($where ?? {}, target) },
            ...each,
          }),
        )
    if (!read || read.length === 0 || read.includes(undefined)) return undefined
    nodes.push(...(read as FilterNode[]))
  }
  return nodes.some(({ kind }) => kind === 'measured') || $where === undefined ? nodes : undefined
}

/** The tests of a measure, or undefined if the builder cannot show one of them. */
function readMeasures(name: string, value: unknown, target: FieldTypes) {
  const measure = measures.find(each => `$${each}` === name)
  if (!measure) return undefined
  if (measure === 'count')
    return readTests('', 'number', operatorsIn(value))?.map(test => ({ measure, of: '', ...test }))
  if (!isObject(value)) return undefined
  const read = Object.entries(value).map(([of, operand]) => {
    const type = target.typeOf(of)
    return measurableTypes[measure].includes(type)
      ? readTests(of, type, operatorsIn(operand))?.map(test => ({ measure, of, ...test }))
      : undefined
  })
  const tests = read.filter(each => each !== undefined && each.length > 0)
  return tests.length === read.length ? tests.flat().filter(each => each !== undefined) : undefined
}

/** The tests of the operators on a field, or undefined if the builder cannot show one of them. */
function readTests(field: string, type: FieldType, operands: Filter): Test[] | undefined {
  const period = readPeriod(field, type, operands)
  if (period) return [period]
  const tests = Object.entries(operands).map(([name, value]) => readTest(type, name, value))
  return tests.includes(undefined) ? undefined : (tests as Test[])
}

function readTest(type: FieldType, name: string, value: unknown): Test | undefined {
  if (name === '$exists')
    return typeof value === 'boolean' ? { operator: value ? 'exists' : 'missing', operand: '' } : undefined
  if (value === null && name === '$eq') return { operator: 'missing', operand: '' }
  if (value === null && name === '$neq') return { operator: 'exists', operand: '' }
  const operator = comparisons.find(each => `$${each}` === name)
  if (!operator) return undefined
  if (operator === 'in' || operator === 'nin') {
    if (!Array.isArray(value) || value.length === 0) return undefined
    const texts = value.map(element => textOfOperand(type, element))
    const isShown = texts.every(text => text !== notShown && text !== '' && !text.includes('\n'))
    return isShown ? { operator, operand: texts.join('\n') } : undefined
  }
  const text = textOfOperand(type, value)
  return text === notShown || text === '' ? undefined : { operator, operand: text }
}
