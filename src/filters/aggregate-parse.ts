import { pointer, refuse } from '../errors.ts'
import { isTimeZone } from '../formats.ts'
import { type Attribute, type Definitions, isRelationship, peopleStackId } from '../organizations/definitions.ts'
import { textFields } from '../profile-fields.ts'
import type { AggregateBody, GroupBy, Measure, MeasureOperation, TimeUnit } from './aggregate-schema.ts'
import { fieldOf } from './fields.ts'
import type { Field } from './grammar.ts'
import { type ParsedFilter, parseFilter, type UndeclaredKey } from './parse.ts'

/** A field that groups, or a span of the time or date that it has. */
export type GroupKey = { field: Field; type: ValueType; span?: { unit: TimeUnit; timeZone: string } | undefined }

/** A measure of each group. `count` without a field counts the entities. */
export type ParsedMeasure = { op: MeasureOperation; field?: Field; type?: ValueType }

/** The type of a field's values. `json` is a value of any type, `name` the external identifier of a linked entity. */
export type ValueType = Exclude<Attribute['type'], 'person' | 'stack'> | 'name' | 'identifier'

export type ParsedAggregate = ParsedFilter & { keys: GroupKey[]; measures: ParsedMeasure[] }

type Context = { definitions: Definitions; stack_id: number; undeclared: UndeclaredKey[] }
type Path = readonly (string | number)[]

/** Parses the body of an aggregate. Throws a Fault of 400 with the JSON Pointer of the first value that breaks a rule. */
export function parseAggregate(
  { filter = {}, group_by = [], measures = [{ op: 'count' }] }: AggregateBody,
  definitions: Definitions,
  stack_id: number,
  boundFrom: 'body' | 'query' = 'body',
): ParsedAggregate {
  const { condition, undeclared } = parseFilter(filter, definitions, stack_id, boundFrom)
  const context = { definitions, stack_id, undeclared: [...undeclared] }
  const keys = group_by.map((entry, index) => parseKey(entry, ['group_by', index], context))
  const parsed = measures.map((measure, index) => parseMeasure(measure, ['measures', index], context))
  return { condition, undeclared: context.undeclared, keys, measures: parsed }
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

/** The message for a time zone that kith or the database does not know. */
export const unknownTimeZone = 'must be UTC or an IANA time zone with its region, such as Europe/Berlin'

const manyValues = 'holds many values: only an attribute of cardinality one can be used here'

function notSpannable(field: Field, attribute: Attribute | undefined): string {
  return field.kind === 'attribute' && !attribute
    ? 'is not declared: declare it as a date or datetime to group it by spans of time'
    : 'is neither a time nor a date'
}

function parsePlainKey(name: string, path: Path, context: Context): GroupKey {
  const { field, type, attribute } = parseField(name, path, context)
  if (attribute?.type === 'json') return throwInvalid(path, 'is of type json: only single values can be grouped')
  if (attribute?.cardinality === 'many') return throwInvalid(path, manyValues)
  return { field, type }
}

const measuredTypes: Record<Exclude<MeasureOperation, 'count'>, { types: readonly ValueType[]; message: string }> = {
  sum: { types: ['number'], message: 'adds numbers' },
  avg: { types: ['number'], message: 'averages numbers' },
  min: { types: ['number', 'text', 'date', 'datetime'], message: 'compares numbers, texts, dates and times' },
  max: { types: ['number', 'text', 'date', 'datetime'], message: 'compares numbers, texts, dates and times' },
}

function parseMeasure({ op, field: name }: Measure, path: Path, context: Context): ParsedMeasure {
  const fieldPath = [...path, 'field']
  if (name === undefined) return op === 'count' ? { op } : throwInvalid(fieldPath, `is required for ${op}`)
  const { field, type, attribute } = parseField(name, fieldPath, context)
  if (op === 'count') return { op, field, type }
  const { types, message } = measuredTypes[op]
  if (field.kind === 'attribute' && !attribute)
    return throwInvalid(fieldPath, `is not declared: ${op} ${message}, so declare the key with its type`)
  if (!types.includes(type)) return throwInvalid(fieldPath, `${op} ${message}, but this is ${nounOf[type]}`)
  if (attribute?.cardinality === 'many') return throwInvalid(fieldPath, manyValues)
  return { op, field, type }
}

const nounOf: Record<ValueType, string> = {
  text: 'a text',
  number: 'a number',
  boolean: 'a boolean',
  date: 'a date',
  datetime: 'a date and time',
  json: 'a value of any type',
  name: 'a relationship',
  identifier: 'an identifier',
}

const acrossRelationship = ({ key }: Attribute) =>
  `leads across the relationship ${key}: an aggregate uses fields of the entity itself, and attribute_values.${key} groups by its target`

type ParsedField = { field: Field; type: ValueType; attribute?: Attribute | undefined }

function parseField(name: string, path: Path, { definitions, stack_id, undeclared }: Context): ParsedField {
  const field = fieldOf(name, stack_id)
  if (!field)
    return throwInvalid(
      path,
      `is not a field of a ${stack_id === peopleStackId ? 'person' : 'record'} that a filter accepts`,
    )
  if (field.kind !== 'attribute') return { field, type: typeOfColumn(field) }
  const declared = definitions.declared.get(stack_id)
  const attribute = declared?.get(field.key)
  if (!attribute) {
    const first = declared?.get(field.key.split('.', 1)[0]!)
    if (first && isRelationship(first)) return throwInvalid(path, acrossRelationship(first))
    undeclared.push({ stack_id, key: field.key, path: pointer(...path) })
    return { field, type: 'json' }
  }
  if (isRelationship(attribute)) return { field, type: 'name', attribute }
  return { field, type: attribute.type as ValueType, attribute }
}

function typeOfColumn(field: Exclude<Field, { kind: 'attribute' }>): ValueType {
  if (field.kind === 'text')
    return field.column !== 'external_id' && textFields[field.column].type === 'date' ? 'date' : 'text'
  if (field.kind === 'time') return 'datetime'
  return field.kind === 'boolean' ? 'boolean' : 'identifier'
}
