import { type Attribute, type Definitions, isRelationship, peopleStackId } from '../organizations/definitions.ts'
import { textFields } from '../profile-fields.ts'
import { fieldOf } from './fields.ts'
import type { Field, ValueType } from './grammar.ts'

/** A field with the type of its values. `attribute` is absent for a column and for an undeclared key. */
export type TypedField = { field: Field; type: ValueType; attribute?: Attribute | undefined }

/** Why a field cannot be used. */
export type FieldFault = { fault: string }

export const manyValues = 'holds many values: only an attribute of cardinality one can be used here'

const acrossRelationship = ({ key }: Attribute) =>
  `leads across the relationship ${key}: an aggregate uses fields of the entity itself, and attribute_values.${key} groups by its target`

/** The field with that name, with the type of its values. */
export function typedFieldOf(name: string, { declared }: Definitions, stack_id: number): TypedField | FieldFault {
  const field = fieldOf(name, stack_id)
  if (!field)
    return { fault: `is not a field of a ${stack_id === peopleStackId ? 'person' : 'record'} that a filter accepts` }
  if (field.kind !== 'attribute') return { field, type: typeOfColumn(field) }
  const attributes = declared.get(stack_id)
  const attribute = attributes?.get(field.key)
  if (!attribute) {
    const first = attributes?.get(field.key.split('.', 1)[0]!)
    return first && isRelationship(first) ? { fault: acrossRelationship(first) } : { field, type: 'json' }
  }
  return { field, type: isRelationship(attribute) ? 'name' : (attribute.type as ValueType), attribute }
}

function typeOfColumn(field: Exclude<Field, { kind: 'attribute' }>): ValueType {
  if (field.kind === 'text')
    return field.column !== 'external_id' && textFields[field.column].type === 'date' ? 'date' : 'text'
  if (field.kind === 'time') return 'datetime'
  return field.kind === 'boolean' ? 'boolean' : 'identifier'
}

export type FieldMeasure = 'sum' | 'avg' | 'min' | 'max' | 'median' | 'percentile'

const ordered: readonly ValueType[] = ['number', 'text', 'date', 'datetime']
const measuredTypes: Record<FieldMeasure, { types: readonly ValueType[]; message: string }> = {
  sum: { types: ['number'], message: 'adds numbers' },
  avg: { types: ['number'], message: 'averages numbers' },
  min: { types: ordered, message: 'compares numbers, texts, dates and times' },
  max: { types: ordered, message: 'compares numbers, texts, dates and times' },
  median: { types: ['number'], message: 'orders numbers' },
  percentile: { types: ['number'], message: 'orders numbers' },
}

/** The fault of a measure of a field. Undefined if the field can be measured. */
export function measureFault(op: FieldMeasure, { field, type, attribute }: TypedField): string | undefined {
  const { types, message } = measuredTypes[op]
  if (field.kind === 'attribute' && !attribute)
    return `is not declared: ${op} ${message}, so declare the key with its type`
  if (!types.includes(type)) return `${op} ${message}, but this is ${nounOf[type]}`
  return attribute?.cardinality === 'many' ? manyValues : undefined
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
