import type { Attribute, Definitions } from '@kith/client'
import type { FixedField } from '../entity/field-labels.ts'
import { attributePrefix, fixedFieldsOf, type Owner, targetOfAttribute, typeOfAttribute } from './field-types.ts'
import type { FieldType, Operator, Quantifier } from './filter-tree.ts'
import type { messages } from './messages.ts'

/** A field that a filter tests. */
export type FilterField = {
  name: string
  label: string
  type: FieldType
  /** The values that the attribute's `enum` allows. */
  choices?: (string | number | boolean)[]
  /** The owner that a relationship leads to. */
  target?: Owner
}

/** The fields of an owner's entities: the fixed ones, then the active attributes. */
export function fieldsOf(
  owner: Owner,
  definitions: Definitions | undefined,
  texts: (typeof messages)['en'],
): FilterField[] {
  const fixed = Object.entries(fixedFieldsOf(owner)).map(([name, type]) => ({
    name,
    label: texts.fields[name as FixedField],
    type,
  }))
  const attributes = (definitions?.attributes ?? []).filter(each => each.owner === owner && each.state === 'active')
  return [...fixed, ...attributes.map(fieldOfAttribute)]
}

function fieldOfAttribute(attribute: Attribute): FilterField {
  const { key, name, enum: choices } = attribute
  const target = targetOfAttribute(attribute)
  return {
    name: attributePrefix + key,
    label: name,
    type: typeOfAttribute(attribute),
    ...(choices && { choices }),
    ...(target !== undefined && { target }),
  }
}

const equality = ['eq', 'neq', 'in', 'nin'] as const
const presence = ['exists', 'missing'] as const
const ranges = ['gt', 'gte', 'lt', 'lte'] as const
const searches = ['contains', 'starts_with', 'ends_with'] as const

/** The operators of each type of field, in the order of the list. */
export const operatorsOf: Record<FieldType, readonly Operator[]> = {
  text: ['eq', 'neq', ...searches, 'in', 'nin', ...presence],
  number: ['eq', 'neq', ...ranges, 'in', 'nin', ...presence],
  boolean: ['eq', ...presence],
  date: ['eq', 'neq', ...ranges, ...presence],
  datetime: [...ranges, ...presence],
  state: ['eq'],
  json: [...equality, ...searches, ...ranges, ...presence],
  relation: [...equality, ...presence],
}

/** The conditions on a relationship: on its targets, or on the identifier of one. */
export const quantifiersOfRelation: readonly Quantifier[] = ['some', 'none', 'every']
