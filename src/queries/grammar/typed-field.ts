import { type Attribute, type Definitions, isRelationship, peopleStackId } from '../../organizations/definitions.ts'
import { attributePrefix, textFields } from '../../values/profile-fields.ts'
import { fieldOf } from './fields.ts'
import type { Field, RelationshipAttribute, ValueType } from './grammar.ts'

/** A field with the type of its values. `attribute` is absent for a column and for an undeclared key. */
export type TypedField = { field: Field; type: ValueType; attribute?: Attribute | undefined }

/** A field of the entity itself or, across a relationship, of each of its targets. */
export type TypedPath = TypedField & { across?: RelationshipAttribute | undefined }

/** The reason why a field cannot be used. */
type FieldFault = { fault: string }

export const manyValues = 'holds many values: only an attribute of cardinality one can be used here'

/**
 * Returns the field that a path names, with the type of its values: `state`, `attribute_values.total`,
 * `attribute_values.buyer.first_name`.
 */
export function typedPathOf(name: string, definitions: Definitions, stack_id: number): TypedPath | FieldFault {
  const hop = hopOf(name, definitions, stack_id)
  if (!hop) return typedFieldOf(name, definitions, stack_id)
  const { attribute, rest } = hop
  if (!isRelationship(attribute))
    return rest.startsWith(attributePrefix)
      ? { fault: `leads across ${attribute.key}, which is not a relationship` }
      : typedFieldOf(name, definitions, stack_id)
  const next = hopOf(rest, definitions, attribute.target_stack_id)
  if (next && isRelationship(next.attribute))
    return {
      fault: `leads across two relationships, ${attribute.key} and ${next.attribute.key}: a field leads across one`,
    }
  const typed = typedFieldOf(rest, definitions, attribute.target_stack_id)
  if (!('fault' in typed)) return { ...typed, across: attribute }
  const example = `${attributePrefix}${attribute.key}.${attributePrefix}${rest}`
  return {
    fault: `leads across the relationship ${attribute.key}, but ${JSON.stringify(rest)} ${typed.fault}: an attribute is ${example}`,
  }
}

/**
 * Splits a name into the relationship that it leads across and the field after it. Undefined for the name of a field.
 */
function hopOf(
  name: string,
  { declared }: Definitions,
  stack_id: number,
): { attribute: Attribute; rest: string } | undefined {
  const field = fieldOf(name, stack_id)
  const attributes = declared.get(stack_id)
  if (field?.kind !== 'attribute' || attributes?.has(field.key)) return undefined
  const [key = ''] = field.key.split('.', 1)
  const attribute = key === field.key ? undefined : attributes?.get(key)
  return attribute && { attribute, rest: field.key.slice(key.length + 1) }
}

/** Returns the field of the entity itself with that name, with the type of its values. */
export function typedFieldOf(name: string, definitions: Definitions, stack_id: number): TypedField | FieldFault {
  const field = fieldOf(name, stack_id)
  if (!field)
    return { fault: `is not a field of a ${stack_id === peopleStackId ? 'person' : 'record'} that a filter accepts` }
  if (field.kind !== 'attribute') return { field, type: typeOfColumn(field) }
  const attribute = definitions.declared.get(stack_id)?.get(field.key)
  if (!attribute) {
    const hop = hopOf(name, definitions, stack_id)
    return hop && isRelationship(hop.attribute)
      ? {
          fault: `leads across the relationship ${hop.attribute.key}: only a field of the entity itself can be used here`,
        }
      : { field, type: 'json' }
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
