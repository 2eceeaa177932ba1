import { type Attribute, type Definitions, isRelationship, peopleStackId } from '../../organizations/definitions.ts'
import type { Rights } from '../../route/field-rights.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { Fault, pointer, throwValueRefusal } from '../../values/errors.ts'
import { addressFields, attributePrefix } from '../../values/profile-fields.ts'
import type { LinkMeasured } from '../plan/linked.ts'
import type { MeasuredSortBody } from '../schema.ts'
import { fieldNamesOf, fieldOf, incomingAttribute, incomingPrefix } from './fields.ts'
import {
  type Condition,
  type ConsentField,
  filterLimits,
  isConsentField,
  isLinkMeasure,
  isQuantifier,
  type Linked,
  type LinkMeasure,
  linkMeasures,
  type Measured,
  otherEndOf,
  type Quantifier,
  quantifiers,
  type Test,
} from './grammar.ts'
import {
  consentFault,
  consentFromQuery,
  consentOperandTypes,
  contactableQuestion,
  deliverabilityFault,
  measuredOperandType,
  type OperandType,
  operandTypeOf,
} from './operand-types.ts'
import { operandFromQuery, testFrom } from './operands.ts'
import { type Clock, isObject, isRelativeTime } from './relative-time.ts'
import { type NamedField, suggestField } from './scopes.ts'
import { type FieldMeasure, measureFault, type TypedField, typedFieldOf } from './typed-field.ts'

/**
 * A filter key that no active attribute has. `path` is the JSON Pointer to the key, or to the `segment` whose filter
 * names it. `hint` ends a warning with a similar key.
 */
export type UndeclaredKey = { stack_id: number; key: string; path: string; segment?: string; hint?: string }

/**
 * The tests of an attribute's values that every match passes, or one part of a disjunction, with its place in the
 * filter.
 */
export type TestedAttribute = { attribute: Attribute; tests: readonly Test[]; path: string; segment?: string }

/** A parsed filter, the undeclared keys that it names, and the attributes whose indexes could find its matches. */
export type ParsedFilter = {
  condition: Condition
  undeclared: UndeclaredKey[]
  tested: TestedAttribute[]
  /** The fields that the filter names, including those of its segments. */
  named: NamedField[]
  /** The time by which relative times were resolved, in RFC 3339. Undefined if the filter has none. */
  evaluated_at?: string | undefined
  /** The stacks that the request reads besides those of the filter. */
  targetStackIds?: readonly number[]
}

export type ParseOptions = {
  /** Set for a query string, whose operands are texts. They are converted to the types of their fields. */
  boundFrom?: BoundFrom | undefined
  /** The key of the segment that has this filter. The filter must not lead back to it. */
  ofSegment?: string | undefined
  /** The time that relative times count from. */
  nowMs?: number | undefined
  /** The caller of the request. A refusal may name the fields that its role opens. */
  caller?: Rights | undefined
}

/** A place in the filter, with the state of the parse. */
type ParseContext = {
  definitions: Definitions
  boundFrom: BoundFrom
  /** The stack whose fields are named here. */
  stack_id: number
  path: Path
  /**
   * The chain of segments that leads here, and the path in the last segment's filter. `path` leads to the first
   * segment.
   */
  segments: { chain: readonly string[]; path: Path } | undefined
  depth: number
  relationDepth: number
  /** The segment that the whole filter belongs to. */
  ofSegment: string | undefined
  clock: Clock
  caller: Rights | undefined
  /** Counted over the whole filter. */
  counted: { conditions: number; relativeTimes: number }
  /** Collected over the whole filter. */
  undeclared: UndeclaredKey[]
  tested: TestedAttribute[]
  named: NamedField[]
  /** Whether an index could find the matches of this part. False under `$not`, `$none` and `$every`. */
  mayUseIndex: boolean
}

type BoundFrom = 'body' | 'query'
type Path = readonly (string | number)[]

/**
 * Parses a filter on the entities of a stack. Throws a Fault of 400 with a JSON Pointer that starts with `/filter`. It
 * leads to the first part that breaks the grammar, exceeds a limit, or is an operand that its field can never equal.
 */
export function parseFilter(
  filter: unknown,
  definitions: Definitions,
  stack_id: number,
  options: ParseOptions = {},
): ParsedFilter {
  const context = contextOf(['filter'], definitions, stack_id, options)
  return parsedIn(context, parseObject(filter, context))
}

/** Parses the filter of a segment. Undefined if the filter is invalid or has become so. */
export function parseSegmentFilter(
  { key, filter }: { key: string; filter: unknown },
  definitions: Definitions,
  nowMs = Date.now(),
): ParsedFilter | undefined {
  try {
    return parseFilter(filter, definitions, peopleStackId, { ofSegment: key, nowMs })
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/**
 * Parses the measure that sorts a page by its linking entities: `field`, `measure` and `where`. Throws a Fault of 400
 * with a JSON Pointer that starts with `/sort`.
 */
export function parseSortMeasure(
  { field: name, measure, where = {} }: MeasuredSortBody,
  definitions: Definitions,
  stack_id: number,
  options: ParseOptions = {},
): ParsedFilter & { condition: LinkMeasured } {
  const context = contextOf(['sort'], definitions, stack_id, options)
  const attribute = name.startsWith(incomingPrefix)
    ? incomingAttribute(name.slice(incomingPrefix.length), definitions, stack_id)
    : `has no measure: only ${incomingPrefix}<owner>.<key>, which stands for those who link here, has one`
  if (typeof attribute === 'string') return throwInvalid(within(context, 'field'), attribute)
  noteLinks(within(context, 'field'), attribute)
  const ends = { attribute, isIncoming: true }
  const there = atOtherEnd(ends, context)
  const measured = sortingMeasure(measure, within(there, 'measure'))
  const condition = parseObject(where, within(there, 'where'))
  return { ...parsedIn(context, condition), condition: { kind: 'measured', ...ends, condition, measured, tests: [] } }
}

function contextOf(
  path: Path,
  definitions: Definitions,
  stack_id: number,
  { boundFrom = 'body', ofSegment, nowMs = Date.now(), caller }: ParseOptions,
): ParseContext {
  return {
    ...{ definitions, stack_id, boundFrom, path, segments: undefined, ofSegment, depth: 1, relationDepth: 0, caller },
    clock: { nowMs, timeZone: definitions.time_zone },
    counted: { conditions: 0, relativeTimes: 0 },
    ...{ undeclared: [], tested: [], named: [], mayUseIndex: true },
  }
}

function parsedIn({ counted, undeclared, tested, named, clock }: ParseContext, condition: Condition): ParsedFilter {
  const evaluated_at = counted.relativeTimes > 0 ? new Date(clock.nowMs).toISOString() : undefined
  return { condition, undeclared, tested, named, evaluated_at }
}

function throwInvalid({ path, segments }: Pick<ParseContext, 'path' | 'segments'>, message: string): never {
  const where =
    segments &&
    `leads to the segment ${segments.chain.at(-1)}, whose filter is invalid at ${pointer(...segments.path)}: `
  const summary = path[0] === 'sort' ? 'The sort is invalid.' : 'The filter is invalid.'
  return throwValueRefusal(pointer(...path), `${where ?? ''}${message}`, summary)
}

const within = (context: ParseContext, ...names: (string | number)[]): ParseContext => {
  const { segments, path } = context
  if (segments) return { ...context, segments: { ...segments, path: [...segments.path, ...names] } }
  return { ...context, path: [...path, ...names] }
}

function parseObject(filter: unknown, context: ParseContext): Condition {
  if (!isObject(filter)) return throwInvalid(context, 'must be an object of conditions')
  if (context.depth > filterLimits.depth)
    return throwInvalid(context, `is nested deeper than ${filterLimits.depth} levels`)
  const conditions = Object.entries(filter).map(([key, operand]) => parseMember(key, operand, within(context, key)))
  return conditions.length === 1 ? conditions[0]! : { kind: 'all', conditions }
}

const combiners = ['$and', '$or', '$not', '$segment']

function parseMember(key: string, operand: unknown, context: ParseContext): Condition {
  const deeper = { ...context, depth: context.depth + 1 }
  if (key === '$not') return { kind: 'not', condition: parseObject(operand, { ...deeper, mayUseIndex: false }) }
  if (key === '$and' || key === '$or') {
    if (!Array.isArray(operand)) return throwInvalid(context, 'must be an array of filters')
    const conditions = operand.map((filter, index) => parseObject(filter, within(deeper, index)))
    return { kind: key === '$and' ? 'all' : 'any', conditions }
  }
  if (key === '$segment') return parseSegment(operand, context)
  if (key.startsWith('$'))
    return throwInvalid(context, `must be a field or one of $and, $or, $not, $segment${didYouMean(key, combiners)}`)
  return parseField(key, operand, context)
}

/** Parses the filter of a segment in the place of its key. Its parts count as if the filter contained them. */
function parseSegment(key: unknown, context: ParseContext): Condition {
  const { definitions, stack_id, ofSegment, segments } = context
  if (stack_id !== peopleStackId) return throwInvalid(context, 'applies only to people')
  // This bounds how often segments without conditions can lead to each other.
  countCondition(context)
  const segment = definitions.segments.find(each => each.key === key)
  if (!segment) return throwInvalid(context, 'must be the key of a segment')
  const before = [...(ofSegment === undefined ? [] : [ofSegment]), ...(segments?.chain ?? [])]
  if (before.includes(segment.key))
    throwInvalid(context, `closes a circle of segments: ${[...before, segment.key].join(' → ')}`)
  const chain = [...(segments?.chain ?? []), segment.key]
  return parseObject(segment.filter, { ...context, boundFrom: 'body', segments: { chain, path: ['filter'] } })
}

/** Records a field that the filter names, because the caller's role may close it. */
const noteNames = ({ named, path }: ParseContext, stack_id: number, ...names: readonly string[]) =>
  named.push(...names.map(each => ({ stack_id, name: each, path: pointer(...path) })))

const noteLinks = (context: ParseContext, { owner_stack_id, key }: Attribute) =>
  noteNames(context, owner_stack_id, `${attributePrefix}${key}`)

function parseField(key: string, operand: unknown, context: ParseContext): Condition {
  if (key === 'consents' && context.stack_id === peopleStackId) return parseConsents(operand, context)
  if (key === 'contactable' && context.stack_id === peopleStackId) return parseContactable(operand, context)
  if (key === 'deliverability' && context.stack_id === peopleStackId) return parseDeliverability(operand, context)
  if (key.startsWith(incomingPrefix)) return parseIncoming(key.slice(incomingPrefix.length), operand, context)
  const field = fieldOf(key, context.stack_id)
  if (!field) return throwNoField(key, context)
  const attribute =
    field.kind === 'attribute' ? context.definitions.declared.get(context.stack_id)?.get(field.key) : undefined
  const place = { path: pointer(...context.path), ...(context.segments && { segment: context.segments.chain.at(-1)! }) }
  context.named.push({ stack_id: context.stack_id, name: key, path: place.path })
  if (field.kind === 'attribute' && !attribute)
    context.undeclared.push({ stack_id: context.stack_id, key: field.key, ...place })
  const type = operandTypeOf(field, context.definitions, context.stack_id)
  const [quantified, tested] = isObject(operand) ? partition(operand, isQuantifier) : [{}, operand]
  const isRelated = Object.keys(quantified).length > 0
  const tests = isRelated && Object.keys(tested as object).length === 0 ? [] : parseTests(type, tested, context)
  if (attribute && context.mayUseIndex) context.tested.push({ attribute, tests, ...place })
  const related = Object.entries(quantified).flatMap(([name, value]): Condition[] => {
    const inner = within(context, name)
    countCondition(inner)
    const relationship = attribute && isRelationship(attribute) ? attribute : undefined
    const ends = { attribute: relationship ?? throwInvalid(inner, 'applies only to a declared relationship') }
    return [parseRelated({ ...ends, isIncoming: false }, name as Quantifier, value, inner)]
  })
  const conditions = [...(tests.length > 0 ? [{ kind: 'field', field, tests } as const] : []), ...related]
  return conditions.length === 1 ? conditions[0]! : { kind: 'all', conditions }
}

/**
 * The message does not name the fields at the other end of a relationship, because the caller may lack the scope that
 * reads them.
 */
function throwNoField(name: string, context: ParseContext): never {
  const { stack_id, caller, definitions, relationDepth, segments } = context
  if (`${name}.` === attributePrefix) throwInvalid(context, 'is no field: write attribute_values.<key>')
  const unknown = { stack_id, name, names: fieldNamesOf(stack_id) }
  const hint = relationDepth === 0 && !segments ? suggestField(caller, definitions, unknown) : ''
  const noun = stack_id === peopleStackId ? 'person' : 'record'
  return throwInvalid(context, `is not a field of a ${noun} that a filter accepts${hint}`)
}

function parseTest(type: OperandType, operator: string, operand: unknown, context: ParseContext): Test {
  countCondition(context)
  const given = context.boundFrom === 'query' ? operandFromQuery(type, operator, operand) : operand
  if (operator === '$anniversary' || [given].flat().some(isRelativeTime)) context.counted.relativeTimes += 1
  const test = testFrom(type, operator, given, context.clock)
  return 'fault' in test ? throwInvalid(within(context, ...test.fault.path), test.fault.message) : test
}

function countCondition(context: ParseContext) {
  context.counted.conditions += 1
  if (context.counted.conditions > filterLimits.conditions)
    throwInvalid(context, `exceeds the maximum of ${filterLimits.conditions} conditions in a filter`)
}

function parseRelated(
  ends: Omit<Linked, 'condition'>,
  quantifier: Quantifier,
  filter: unknown,
  context: ParseContext,
): Condition {
  const there = atOtherEnd(ends, context)
  const mayUseIndex = there.mayUseIndex && quantifier === '$some'
  return { kind: 'related', quantifier, ...ends, condition: parseObject(filter, { ...there, mayUseIndex }) }
}

/** The context of a filter on the entities at the other end of links. */
function atOtherEnd(ends: Omit<Linked, 'condition'>, context: ParseContext): ParseContext {
  const relationDepth = context.relationDepth + 1
  if (relationDepth > filterLimits.relationDepth)
    return throwInvalid(context, `exceeds the maximum of ${filterLimits.relationDepth} relationships in a row`)
  return { ...context, stack_id: otherEndOf(ends), relationDepth, depth: context.depth + 1 }
}

/**
 * Parses conditions on the entities that link here. `name` is the field without its prefix:
 * `<people or a stack key>.<attribute key>`.
 */
function parseIncoming(name: string, operand: unknown, context: ParseContext): Condition {
  const attribute = incomingAttribute(name, context.definitions, context.stack_id)
  if (typeof attribute === 'string') return throwInvalid(context, attribute)
  noteLinks(context, attribute)
  const ends = { attribute, isIncoming: true }
  if (!isObject(operand)) return throwInvalid(context, `must be an object with ${incomingOperators}`)
  const { $where, ...operators } = operand
  const measures = Object.keys(operators).filter(isLinkMeasure)
  if ($where !== undefined && measures.length === 0)
    return throwInvalid(within(context, '$where'), `needs one of ${linkMeasures.join(', ')} beside it`)
  const there = atOtherEnd(ends, context)
  const selected = $where === undefined ? everything : parseObject($where, within(there, '$where'))
  const conditions = Object.entries(operators).flatMap(([operator, value]): Condition[] => {
    const inner = within(there, operator)
    if (isQuantifier(operator)) {
      countCondition(inner)
      return [parseRelated(ends, operator, value, within(context, operator))]
    }
    if (!isLinkMeasure(operator)) return throwInvalid(inner, `is not an operator here: use ${incomingOperators}`)
    return parseMeasured(operator, value, inner).map(measured => ({
      ...{ kind: 'measured', ...ends, condition: selected, ...measured },
    }))
  })
  if (conditions.length === 0) return throwInvalid(context, `must have one of ${incomingOperators}`)
  return conditions.length === 1 ? conditions[0]! : { kind: 'all', conditions }
}

const everything: Condition = { kind: 'all', conditions: [] }
const incomingOperators = [...quantifiers, ...linkMeasures].join(', ')

/** Parses the number of linked entities, or measures of their fields. */
function parseMeasured(
  op: LinkMeasure,
  operand: unknown,
  context: ParseContext,
): { measured: Measured; tests: Test[] }[] {
  if (op === '$count') return [{ measured: { op }, tests: parseTests(measuredOperandType('number'), operand, context) }]
  const fields = isObject(operand) ? Object.entries(operand) : []
  if (fields.length === 0)
    return throwInvalid(context, 'must be an object with a field: {"attribute_values.total": {"$gte": 100}}')
  return fields.map(([name, tested]) => {
    const inner = within(context, name)
    const { field, type } = measuredField(op.slice(1) as FieldMeasure, name, inner)
    return { measured: { op, field, type }, tests: parseTests(measuredOperandType(type as 'number'), tested, inner) }
  })
}

/** Parses a measure whose results a cursor can order: numbers, dates and times. */
function sortingMeasure({ op, field: name }: MeasuredSortBody['measure'], context: ParseContext): Measured {
  const inner = within(context, 'field')
  if (op === 'count') {
    if (name !== undefined) throwInvalid(inner, 'is not taken by count, which counts those who link here')
    return { op: '$count' }
  }
  if (name === undefined) return throwInvalid(inner, `is required: ${op} measures a field of those who link here`)
  const { field, type } = measuredField(op, name, inner)
  if (type === 'text') throwInvalid(inner, `is a text: a page is sorted by numbers, dates and times`)
  return { op: `$${op}`, field, type }
}

function measuredField(op: FieldMeasure, name: string, context: ParseContext): TypedField {
  const typed = typedFieldOf(name, context.definitions, context.stack_id)
  const fault = 'fault' in typed ? typed.fault : measureFault(op, typed)
  if (fault !== undefined || 'fault' in typed) return throwInvalid(context, fault!)
  noteNames(context, context.stack_id, name)
  return typed
}

function parseConsents(operand: unknown, context: ParseContext): Condition {
  noteNames(context, peopleStackId, 'consents')
  if (!isObject(operand)) return throwInvalid(context, 'must be an object with $some')
  for (const name of Object.keys(operand))
    if (name !== '$some') throwInvalid(within(context, name), 'is not an operator of consents: use $some')
  const inner = within(context, '$some')
  const { $some } = operand
  if (!isObject($some)) return throwInvalid(inner, 'must be an object of the fields of a consent')
  const [tested, rest] = partition($some, isConsentField)
  const given = context.boundFrom === 'query' ? consentFromQuery(rest) : rest
  const fault = consentFault(given, context.definitions.consent_types)
  if (fault) return throwInvalid(within(inner, ...fault.path), fault.message)
  countCondition(inner)
  const tests = Object.entries(tested).flatMap(([name, value]) => {
    const field = name as ConsentField
    return parseTests(consentOperandTypes[field], value, within(inner, field)).map(test => ({ field, test }))
  })
  return { kind: 'consents', ...given, tests }
}

/** The suppression of an address ends at a time, so the condition depends on the time. */
function parseContactable(operand: unknown, context: ParseContext): Condition {
  noteNames(context, peopleStackId, 'consents', ...addressFields)
  if (!isObject(operand)) return throwInvalid(context, 'must be an object of consent_type_id and channel')
  const given = context.boundFrom === 'query' ? consentFromQuery(operand) : operand
  const question = contactableQuestion(given, context.definitions.consent_types)
  if ('message' in question) return throwInvalid(within(context, ...question.path), question.message)
  countCondition(context)
  context.counted.relativeTimes += 1
  return { kind: 'contactable', ...question, at: new Date(context.clock.nowMs).toISOString() }
}

/** Like `contactable`, this condition depends on the time. */
function parseDeliverability(operand: unknown, context: ParseContext): Condition {
  noteNames(context, peopleStackId, ...addressFields)
  const inner = within(context, '$some')
  if (!isObject(operand) || Object.keys(operand).join() !== '$some')
    return throwInvalid(context, 'must be an object with $some')
  const { $some } = operand
  if (!isObject($some)) return throwInvalid(inner, 'must be an object of channel and state')
  const fault = deliverabilityFault($some)
  if (fault) return throwInvalid(within(inner, ...fault.path), fault.message)
  countCondition(inner)
  context.counted.relativeTimes += 1
  return { kind: 'deliverability', ...$some, at: new Date(context.clock.nowMs).toISOString() }
}

/** Splits the members of an object into those with a matching name and the others. */
function partition(values: Record<string, unknown>, matches: (name: string) => boolean) {
  const entries = Object.entries(values)
  return [true, false].map(side => Object.fromEntries(entries.filter(([name]) => matches(name) === side))) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ]
}

/** Parses a plain value, which means equality, or an object of operators. */
function parseTests(type: OperandType, operand: unknown, context: ParseContext): Test[] {
  if (!isObject(operand) || isRelativeTime(operand)) return [parseTest(type, '$eq', operand, context)]
  const operators = Object.entries(operand)
  if (operators.length === 0) return throwInvalid(context, 'must have at least one operator')
  return operators.map(([name, value]) => parseTest(type, name, value, within(context, name)))
}
