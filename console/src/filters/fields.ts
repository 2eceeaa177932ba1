import type { Attribute, Definitions } from '@kith/client'
import { mayUse } from '../app/field-rights.ts'
import { ownerName } from '../entity/address.ts'
import type { FixedField } from '../entity/field-labels.ts'
import {
  attributePrefix,
  fixedFieldsOf,
  incomingAttributes,
  incomingField,
  type Owner,
  targetOfAttribute,
  typeOfAttribute,
} from './field-types.ts'
import { type FieldType, type Measure, measurableTypes, type Operator } from './filter-tree.ts'
import type { messages } from './messages.ts'

/** A field that a filter tests. */
export type FilterField = {
  name: string
  label: string
  type: FieldType
  /** The values that the attribute's `enum` allows. */
  choices?: (string | number | boolean)[]
  /** The owner that a relationship leads to, or that links here by it. */
  target?: Owner
  /** Whether the field has many values, which no measure takes. */
  isMany?: boolean
  /** Whether the field has an index. */
  isIndexed?: boolean
}

/** The fields of an owner's entities: the fixed ones, then the active attributes. */
export function fieldsOf(
  owner: Owner,
  definitions: Definitions | undefined,
  texts: (typeof messages)['en'],
): FilterField[] {
  const open = Object.entries(fixedFieldsOf(owner)).filter(([name]) => mayUse('read', owner, name))
  const fixed = open.map(([name, type]) => ({ name, label: texts.fields[name as FixedField], type }))
  const attributes = (definitions?.attributes ?? []).filter(each => each.owner === owner && each.state === 'active')
  return [...fixed, ...attributes.map(fieldOfAttribute)]
}

/** The relationships that lead to an owner, each as a field of its entities. */
export function incomingFieldsOf(
  owner: Owner,
  definitions: Definitions | undefined,
  texts: (typeof messages)['en'],
): FilterField[] {
  const incoming = incomingAttributes(owner, definitions)
  return incoming.map(attribute => {
    const name = ownerName(attribute.owner, definitions, texts.people)
    // A relationship is named after its owner alone, unless it could be confused with another field.
    const isOnly = incoming.every(other => other === attribute || other.owner !== attribute.owner)
    const isTaken = definitions?.attributes.some(
      other => other.owner === owner && other.name === name && !isFollowedBack(other, definitions),
    )
    return {
      name: incomingField(attribute),
      label: isOnly && !isTaken ? name : `${name} (${attribute.name || attribute.key})`,
      type: 'incoming',
      target: attribute.owner,
    }
  })
}

/**
 * Whether a relationship with many targets is the other side of the targets' only relationship, as the orders of a
 * person are of the buyer of an order. The relationship of the targets allows more conditions: on their number, and on
 * measures of their fields.
 */
export function isFollowedBack(attribute: Attribute, definitions: Definitions | undefined): boolean {
  const target = targetOfAttribute(attribute)
  if (target === undefined || attribute.cardinality !== 'many') return false
  const back = incomingAttributes(attribute.owner, definitions).filter(({ owner }) => owner === target)
  return back.length === 1 && back[0]!.cardinality === 'one'
}

/** Whether a measure takes a field. */
export const isMeasurable = (measure: Measure, { type, isMany }: FilterField): boolean =>
  measurableTypes[measure].includes(type) && !isMany

function fieldOfAttribute(attribute: Attribute): FilterField {
  const { key, name, enum: choices, cardinality, indexed } = attribute
  const target = targetOfAttribute(attribute)
  return {
    name: attributePrefix + key,
    label: name,
    type: typeOfAttribute(attribute),
    ...(choices && { choices }),
    ...(target !== undefined && { target }),
    isMany: cardinality === 'many',
    isIndexed: indexed,
  }
}

const equality = ['eq', 'neq', 'in', 'nin'] as const
const presence = ['exists', 'missing'] as const
const ranges = ['gt', 'gte', 'lt', 'lte'] as const
const searches = ['contains', 'starts_with', 'ends_with'] as const

const periods = ['in_last', 'in_next', 'before_today'] as const

/** The operators of each type of field, in the order of the choices. */
export const operatorsOf: Record<FieldType, readonly Operator[]> = {
  text: ['eq', 'neq', ...searches, 'in', 'nin', ...presence],
  number: ['eq', 'neq', ...ranges, 'in', 'nin', ...presence],
  boolean: ['eq', ...presence],
  date: [...periods, 'anniversary', 'eq', 'neq', ...ranges, ...presence],
  datetime: [...periods, ...ranges, ...presence],
  state: ['eq'],
  json: [...equality, ...searches, ...ranges, ...presence],
  relation: [...equality, ...presence],
  incoming: [],
}

/** The operators of a number of entities, which is never missing. */
export const operatorsOfCount = operatorsOf.number.filter(operator => operator !== 'exists' && operator !== 'missing')
