import { pointer, refuse } from '../errors.ts'
import { isTimeZone, unknownTimeZone } from '../formats.ts'
import type { Attribute, Definitions } from '../organizations/definitions.ts'
import type {
  AggregateBody,
  GroupBy,
  Having,
  Measure,
  MeasureOperation,
  SortEntry,
  TimeUnit,
} from './aggregate-schema.ts'
import type { Field, Test, ValueType } from './grammar.ts'
import { measuredOperandType } from './operand-types.ts'
import { operandFromQuery, testFrom } from './operands.ts'
import { type ParsedFilter, type ParseOptions, parseFilter, type UndeclaredKey } from './parse.ts'
import { type Clock, isRelativeTime } from './relative-time.ts'
import { manyValues, measureFault, type TypedField, typedFieldOf } from './typed-field.ts'

/** A field that groups, or a span of the time or date that it has. */
export type GroupKey = { field: Field; type: ValueType; span?: { unit: TimeUnit; timeZone: string } | undefined }

/** A measure of each group. `count` without a field counts the entities. Only a percentile has `p`. */
export type ParsedMeasure = { op: MeasureOperation; field?: Field; type?: ValueType; p?: number }

/** An order of the groups, by the measure or the group at a position. */
export type GroupOrder = { of: 'measure' | 'group'; index: number; isDescending: boolean }

/** Tests of the measure at a position. */
export type MeasureTests = { index: number; tests: Test[] }

/** Which groups of an aggregate are kept, and in which order. */
export type Selection = { having: MeasureTests[]; sort: GroupOrder[]; limit: number | undefined }

export type ParsedAggregate = ParsedFilter & Selection & { keys: GroupKey[]; measures: ParsedMeasure[] }

type Context = { definitions: Definitions; stack_id: number; undeclared: UndeclaredKey[] }
type Path = readonly (string | number)[]

/** Parses the body of an aggregate. Throws a Fault of 400 with the JSON Pointer of the first value that breaks a rule. */
export function parseAggregate(
  { filter = {}, group_by = [], measures = [{ op: 'count' }], having = [], sort = [], limit }: AggregateBody,
  definitions: Definitions,
  stack_id: number,
  { boundFrom = 'body', nowMs = Date.now() }: ParseOptions = {},
): ParsedAggregate {
  const { condition, undeclared, evaluated_at } = parseFilter(filter, definitions, stack_id, { boundFrom, nowMs })
  const clock = { nowMs, timeZone: definitions.time_zone }
  const context = { definitions, stack_id, undeclared: [...undeclared] }
  const keys = group_by.map((entry, index) => parseKey(entry, ['group_by', index], context))
  const parsed = measures.map((measure, index) => parseMeasure(measure, ['measures', index], context))
  const isRelative = having.some(tests => Object.values(tests).flat().some(isRelativeTime))
  return {
    ...{ condition, undeclared: context.undeclared, keys, measures: parsed, limit },
    evaluated_at: isRelative ? new Date(nowMs).toISOString() : evaluated_at,
    having: having.map((entry, index) => parseHaving(entry, ['having', index], { measures: parsed, boundFrom, clock })),
    sort: sort.map((entry, index) => parseSort(entry, ['sort', index], { measure: parsed.length, group: keys.length })),
  }
}

function throwInvalid(path: Path, message: string): never {
  return refuse('invalid_parameter', 'The request breaks a rule.', { details: [{ path: pointer(...path), message }] })
}

function parseKey(entry: GroupBy, path: Path, context: Context): GroupKey {
  if (typeof entry === 'string') return parsePlainKey(entry, path, context)
  const { field: name, by, time_zone } = entry
  const fieldPath = [...path, 'field']
  const { field, type, attribute } = parseField(name, fieldPath, context)
  if (attribute?.cardinality === 'many') return throwInvalid(fieldPath, manyValues)
  if (type !== 'date' && type !== 'datetime') return throwInvalid(fieldPath, notSpannable(field, attribute))
  if (time_zone === undefined) return { field, type, span: { unit: by, timeZone: 'UTC' } }
  const zonePath = [...path, 'time_zone']
  if (type === 'date') return throwInvalid(zonePath, 'applies only to times: a date has no time zone')
  if (!isTimeZone(time_zone)) return throwInvalid(zonePath, unknownTimeZone)
  return { field, type, span: { unit: by, timeZone: time_zone } }
}

function notSpannable(field: Field, attribute: Attribute | undefined): string {
  return field.kind === 'attribute' && !attribute
    ? 'is not declared: declare it as a date or datetime to group it by spans of time'
    : 'is neither a time nor a date'
}

function parsePlainKey(name: string, path: Path, context: Context): GroupKey {
  const typed = parseField(name, path, context)
  throwIfNotSingle(typed, path)
  return { field: typed.field, type: typed.type }
}

function throwIfNotSingle({ attribute }: TypedField, path: Path) {
  if (attribute?.type === 'json') throwInvalid(path, 'is of type json: only single values can be grouped')
  if (attribute?.cardinality === 'many') throwInvalid(path, manyValues)
}

function parseMeasure({ op, field: name, p }: Measure, path: Path, context: Context): ParsedMeasure {
  const fieldPath = [...path, 'field']
  if (op === 'percentile' && p === undefined) return throwInvalid([...path, 'p'], 'is required for percentile')
  if (op !== 'percentile' && p !== undefined) return throwInvalid([...path, 'p'], 'applies only to percentile')
  if (name === undefined) return op === 'count' ? { op } : throwInvalid(fieldPath, `is required for ${op}`)
  const typed = parseField(name, fieldPath, context)
  const { field, type } = typed
  if (op === 'count') return { op, field, type }
  if (op === 'count_distinct') throwIfNotSingle(typed, fieldPath)
  else {
    const fault = measureFault(op, typed)
    if (fault !== undefined) return throwInvalid(fieldPath, fault)
  }
  return { op, field, type, ...(p !== undefined && { p }) }
}

function parseSort({ measure, group, direction }: SortEntry, path: Path, counts: Record<GroupOrder['of'], number>) {
  if ((measure === undefined) === (group === undefined)) return throwInvalid(path, 'must have either measure or group')
  const [of, index] = measure === undefined ? (['group', group!] as const) : (['measure', measure] as const)
  if (index >= counts[of]) return throwInvalid([...path, of], noPosition(of, counts[of]))
  return { of, index, isDescending: direction === 'desc' }
}

const noPosition = (of: GroupOrder['of'], count: number) =>
  `must be the position of a ${of}, counted from 0: the request has ${count}`

function parseHaving(
  { measure: index, ...operators }: Having,
  path: Path,
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

function parseField(name: string, path: Path, { definitions, stack_id, undeclared }: Context): TypedField {
  const typed = typedFieldOf(name, definitions, stack_id)
  if ('fault' in typed) return throwInvalid(path, typed.fault)
  const { field, attribute } = typed
  if (field.kind === 'attribute' && !attribute) undeclared.push({ stack_id, key: field.key, path: pointer(...path) })
  return typed
}
