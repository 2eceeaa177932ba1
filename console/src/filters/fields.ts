import type { Attribute, Definitions } from '@kith/client'
import type { FieldType, Operator, Quantifier } from './filter-tree.ts'
import type { messages } from './messages.ts'
import type { FieldTypes } from './read-filter.ts'

/** The owner of fields: `people`, or the key of a stack. */
export type Owner = string

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

export const attributePrefix = 'attribute_values.'

const personFields = {
  first_name: 'text',
  last_name: 'text',
  email: 'name',
  mobile_prefix: 'text',
  mobile_number: 'text',
  date_of_birth: 'date',
  language: 'name',
  email_consent: 'boolean',
  sms_consent: 'boolean',
  push_notification_consent: 'boolean',
} as const satisfies Record<string, FieldType>

const sharedFields = {
  external_id: 'name',
  state: 'state',
  created_at: 'datetime',
  updated_at: 'datetime',
} as const satisfies Record<string, FieldType>

const fixedFields = { ...personFields, ...sharedFields }

/** A field that every person or record has, without the attributes. */
export type FixedField = keyof typeof fixedFields

/** The fields of an owner's entities: the fixed ones, then the active attributes. */
export function fieldsOf(
  owner: Owner,
  definitions: Definitions | undefined,
  texts: (typeof messages)['en'],
): FilterField[] {
  const fixed = Object.entries(owner === 'people' ? fixedFields : sharedFields).map(([name, type]) => ({
    name,
    label: texts.fields[name as FixedField],
    type,
  }))
  const attributes = (definitions?.attributes ?? []).filter(each => each.owner === owner && each.state === 'active')
  return [...fixed, ...attributes.map(fieldOfAttribute)]
}

function fieldOfAttribute({ key, name, type, enum: choices, target_stack }: Attribute): FilterField {
  const isRelation = type === 'person' || type === 'stack'
  return {
    name: attributePrefix + key,
    label: name,
    type: isRelation ? 'relation' : type,
    ...(choices && { choices }),
    ...(isRelation && { target: type === 'person' ? 'people' : target_stack! }),
  }
}

/** The types of an owner's fields, for reading and writing a filter. An undeclared key has the type `json`. */
export function fieldTypesOf(owner: Owner, definitions: Definitions | undefined): FieldTypes {
  const fixed: Record<string, FieldType> = owner === 'people' ? fixedFields : sharedFields
  const attributeOf = (field: string) =>
    definitions?.attributes.find(
      each => each.owner === owner && each.state === 'active' && attributePrefix + each.key === field,
    )
  return {
    typeOf: field => {
      const attribute = attributeOf(field)
      if (attribute) return fieldOfAttribute(attribute).type
      return Object.hasOwn(fixed, field) ? fixed[field]! : 'json'
    },
    targetOf: field => {
      const attribute = attributeOf(field)
      const target = attribute && fieldOfAttribute(attribute).target
      return target === undefined ? undefined : fieldTypesOf(target, definitions)
    },
  }
}

const equality = ['eq', 'neq', 'in', 'nin'] as const
const presence = ['exists', 'missing'] as const
const ranges = ['gt', 'gte', 'lt', 'lte'] as const
const searches = ['contains', 'starts_with', 'ends_with'] as const

/** The operators of each type of field, in the order of the list. */
export const operatorsOf: Record<FieldType, readonly Operator[]> = {
  text: ['eq', 'neq', ...searches, 'in', 'nin', ...presence],
  name: ['eq', 'neq', ...searches, 'in', 'nin', ...presence],
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
