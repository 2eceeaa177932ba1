import { type Attribute, type Definitions, isRelationship } from '../../organizations/definitions.ts'
import { pointer, throwBrokenRule } from '../../values/errors.ts'
import { isTimeZone, unknownTimeZone } from '../../values/formats.ts'
import { attributePrefix } from '../../values/profile-fields.ts'
import { fieldNamesOf, fieldOf } from '../grammar/fields.ts'
import type { Field, RelationshipAttribute, Test, ValueType } from '../grammar/grammar.ts'
import { measuredOperandType } from '../grammar/operand-types.ts'
import { operandFromQuery, testFrom } from '../grammar/operands.ts'
import { type ParsedFilter, type ParseOptions, parseFilter, type UndeclaredKey } from '../grammar/parse.ts'
import { type Clock, isRelativeTime } from '../grammar/relative-time.ts'
import { type NamedField, suggestField } from '../grammar/scopes.ts'
import { manyValues, measureFault, type TypedPath, typedPathOf } from '../grammar/typed-field.ts'
import {
  type AggregateBody,
  type GroupBy,
  type Having,
  type Measure,
  type MeasureOperation,
  maxGroups,
  type SortEntry,
  type TimeUnit,
} from './schema.ts'

/** A field of the entity or, across a relationship, of its targets. */
export type Path = { field: Field; type: ValueType; across?: RelationshipAttribute | undefined }

/** A grouping field, or a span of its time or date. */
export type GroupKey = Path & { span?: { unit: TimeUnit; timeZone: string } | undefined }

/** A measure of each group. `count` without a field counts the entities. Only a percentile has `p`. */
export type ParsedMeasure = Partial<Path> & { op: MeasureOperation; p?: number }

/** An order of the groups, by the measure or the group at a position. */
type GroupOrder = { of: 'measure' | 'group'; index: number; isDescending: boolean }

/** The tests of the measure at a position. */
type MeasureTests = { index: number; tests: Test[] }

/** The groups of an aggregate to keep, and their order. */
export type Selection = { having: MeasureTests[]; sort: GroupOrder[]; limit: number | undefined }

export type ParsedAggregate = ParsedFilter & Selection & { keys: GroupKey[]; measures: ParsedMeasure[] }

/** Advice for a client whose aggregate has more groups than an answer in JSON. */
export const howToStream = 'send Accept: application/x-ndjson to stream any number'

type Context = Pick<ParseOptions, 'caller'> & {
  definitions: Definitions
  stack_id: number
  undeclared: UndeclaredKey[]
  named: NamedField[]
}
type Pointer = readonly (string | number)[]

/** Parses the body of an aggregate. Throws a Fault of 400 with the JSON Pointer of the first value that breaks a rule. */
export function parseAggregate(
  { filter = {}, group_by = [], measures = [{ op: 'count' }], having = [], sort = [], limit }: AggregateBody,
  definitions: Definitions,
  stack_id: number,
  { boundFrom = 'body', nowMs = Date.now(), isStreamed = false, caller }: ParseOptions & { isStreamed?: boolean } = {},
): ParsedAggregate {
  if (limit !== undefined && limit > maxGroups && !isStreamed)
    throwInvalid(['limit'], `must be at most ${maxGroups}: ${howToStream}`)
  const options = { boundFrom, nowMs, caller }
  const { condition, undeclared, tested, named, evaluated_at } = parseFilter(filter, definitions, stack_id, options)
  const clock = { nowMs, timeZone: definitions.time_zone }
  const context = { definitions, stack_id, caller, undeclared: [...undeclared], named: [...named] }
  const keys = group_by.map((entry, index) => parseKey(entry, ['group_by', index], context))
  throwIfTwoOfMany(keys)
  const parsed = measures.map((measure, index) => parseMeasure(measure, ['measures', index], context))
  const isRelative = having.some(tests => Object.values(tests).flat().some(isRelativeTime))
  return {
    ...{ condition, undeclared: context.undeclared, tested, named: context.named, keys, measures: parsed, limit },
    targetStackIds: [...keys, ...parsed].flatMap(({ across }) => across?.target_stack_id ?? []),
    evaluated_at: isRelative ? new Date(nowMs).toISOString() : evaluated_at,
    having: having.map((entry, index) => parseHaving(entry, ['having', index], { measures: parsed, boundFrom, clock })),
    sort: sort.map((entry, index) => parseSort(entry, ['sort', index], { measure: parsed.length, group: keys.length })),
  }
}

function throwInvalid(path: Pointer, message: string): never {
  return throwBrokenRule(pointer(...path), message)
}

function parseKey(entry: GroupBy, path: Pointer, context: Context): GroupKey {
  if (typeof entry === 'string') return parsePlainKey(entry, path, context)
  const { field: name, by, time_zone } = entry
  const fieldPath = [...path, 'field']
  const { field, type, attribute, across } = parseField(name, fieldPath, context)
  if (attribute?.cardinality === 'many') return throwInvalid(fieldPath, manyValues)
  if (type !== 'date' && type !== 'datetime') return throwInvalid(fieldPath, notSpannable(field, attribute))
  if (time_zone === undefined) return { field, type, across, span: { unit: by, timeZone: 'UTC' } }
  const zonePath = [...path, 'time_zone']
  if (type === 'date') return throwInvalid(zonePath, 'applies only to times: a date has no time zone')
  if (!isTimeZone(time_zone)) return throwInvalid(zonePath, unknownTimeZone)
  return { field, type, across, span: { unit: by, timeZone: time_zone } }
}

function notSpannable(field: Field, attribute: Attribute | undefined): string {
  return field.kind === 'attribute' && !attribute
    ? 'is not declared: declare it as a date or datetime to group it by spans of time'
    : 'is neither a time nor a date'
}

function parsePlainKey(name: string, path: Pointer, context: Context): GroupKey {
  const typed = parseField(name, path, context)
  const { field, type, attribute, across } = typed
  if (attribute?.cardinality === 'many' && isRelationship(attribute) && !across)
    return throwInvalid(path, `leads to many targets: group by a field of them, such as ${name}.external_id`)
  throwIfNotSingle(typed, path)
  return { field, type, across }
}

function throwIfNotSingle({ attribute }: TypedPath, path: Pointer) {
  if (attribute?.type === 'json') throwInvalid(path, 'is of type json: only single values can be grouped')
  if (attribute?.cardinality === 'many') throwInvalid(path, manyValues)
}

/**
 * Refuses two fields across relationships of cardinality many. An entity would be in a group for each pair of its
 * targets.
 */
function throwIfTwoOfMany(keys: readonly GroupKey[]) {
  const [first, other] = keys.map(({ across }) => (across?.cardinality === 'many' ? across : undefined))
  if (first && other && first !== other)
    throwInvalid(['group_by', 1], `leads to many targets, as ${first.key} does: groups use one such relationship`)
}

function parseMeasure({ op, field: name, p }: Measure, path: Pointer, context: Context): ParsedMeasure {
  const fieldPath = [...path, 'field']
  if (op === 'percentile' && p === undefined) return throwInvalid([...path, 'p'], 'is required for percentile')
  if (op !== 'percentile' && p !== undefined) return throwInvalid([...path, 'p'], 'applies only to percentile')
  if (name === undefined) return op === 'count' ? { op } : throwInvalid(fieldPath, `is required for ${op}`)
  const typed = parseField(name, fieldPath, context)
  const { field, type, across } = typed
  if (across?.cardinality === 'many')
    return throwInvalid(
      fieldPath,
      `leads to many targets of each entity: a measure uses a relationship of cardinality one`,
    )
  if (op === 'count') return { op, field, type, across }
  if (op === 'count_distinct') throwIfNotSingle(typed, fieldPath)
  else {
    const fault = measureFault(op, typed)
    if (fault !== undefined) return throwInvalid(fieldPath, fault)
  }
  return { op, field, type, across, ...(p !== undefined && { p }) }
}

function parseSort({ measure, group, direction }: SortEntry, path: Pointer, counts: Record<GroupOrder['of'], number>) {
  if ((measure === undefined) === (group === undefined)) return throwInvalid(path, 'must have either measure or group')
  const [of, index] = measure === undefined ? (['group', group!] as const) : (['measure', measure] as const)
  if (index >= counts[of]) return throwInvalid([...path, of], noPosition(of, counts[of]))
  return { of, index, isDescending: direction === 'desc' }
}

const noPosition = (of: GroupOrder['of'], count: number) =>
  `must be the position of a ${of}, counted from 0: the request has ${count}`

function parseHaving(
  { measure: index, ...operators }: Having,
  path: Pointer,
  { measures, boundFrom, clock }: { measures: readonly ParsedMeasure[]; boundFrom: 'body' | 'query'; clock: Clock },
): MeasureTests {
  const measure = measures[index]
  if (!measure) return throwInvalid([...path, 'measure'], noPosition('measure', measures.length))
  const type = measuredOperandType(resultType(measure))
  const given = Object.entries(operators)
  if (given.length === 0) return throwInvalid(path, 'must have at least one operator')
  const tests = given.map(([operator, value]) => {
    const operand = boundFrom === 'query' ? operandFromQuery(type, operator, value) : value
    const test = testFrom(type, operator, operand, clock)
    return 'fault' in test ? throwInvalid([...path, operator, ...test.fault.path], test.fault.message) : test
  })
  return { index, tests }
}

/** The type of the result of a measure. */
const resultType = ({ op, type }: ParsedMeasure): MeasuredType =>
  op === 'min' || op === 'max' ? (type as MeasuredType) : 'number'

type MeasuredType = Parameters<typeof measuredOperandType>[0]

function parseField(name: string, path: Pointer, context: Context): TypedPath {
  const { definitions, stack_id, undeclared, named, caller } = context
  const typed = typedPathOf(name, definitions, stack_id)
  if ('fault' in typed) {
    const unknown = { stack_id, name, names: fieldNamesOf(stack_id) }
    return throwInvalid(path, typed.fault + (fieldOf(name, stack_id) ? '' : suggestField(caller, definitions, unknown)))
  }
  const { field, attribute, across } = typed
  const place = pointer(...path)
  if (across) named.push({ stack_id, name: `${attributePrefix}${across.key}`, path: place })
  const of = across?.target_stack_id ?? stack_id
  named.push({ stack_id: of, name: 'key' in field ? `${attributePrefix}${field.key}` : nameOf(field), path: place })
  if (field.kind === 'attribute' && !attribute) undeclared.push({ stack_id: of, key: field.key, path: place })
  return typed
}

/** The name of a field that is no attribute: its column, or the kind of the identifiers and the state. */
const nameOf = (field: Exclude<Field, { kind: 'attribute' }>) => ('column' in field ? field.column : field.kind)
