import { type Attribute, profileFields } from '@kith/client'
import type { FieldType } from './filter-tree.ts'
import type { FieldTypes } from './read-filter.ts'

/** The owner of fields: `people`, or the key of a stack. */
export type Owner = string

/** The members of an attribute that decide how a filter tests it. */
export type TestedAttribute = {
  owner: string
  key: string
  type: Attribute['type']
  target_stack: string | null
  state: 'active' | 'archived'
}

export const attributePrefix = 'attribute_values.'

const sharedFields = {
  external_id: 'text',
  state: 'state',
  created_at: 'datetime',
  updated_at: 'datetime',
} as const satisfies Record<string, FieldType>

const personFields: Record<string, FieldType> = {
  ...Object.fromEntries(Object.entries(profileFields).map(([name, { type }]) => [name, type])),
  ...sharedFields,
}

/** The fields that every entity of the owner has, with their types. */
export const fixedFieldsOf = (owner: Owner): Record<string, FieldType> =>
  owner === 'people' ? personFields : sharedFields

const isRelation = ({ type }: TestedAttribute) => type === 'person' || type === 'stack'

/** The type of the field of an attribute. */
export const typeOfAttribute = (attribute: TestedAttribute): FieldType =>
  isRelation(attribute) ? 'relation' : (attribute.type as FieldType)

/** The owner that a relationship leads to. */
export const targetOfAttribute = (attribute: TestedAttribute): Owner | undefined =>
  isRelation(attribute) ? (attribute.target_stack ?? 'people') : undefined

/** The types of an owner's fields, for reading and writing a filter. An undeclared key has the type `json`. */
export function fieldTypesOf(
  owner: Owner,
  definitions: { attributes: readonly TestedAttribute[] } | undefined,
): FieldTypes {
  const fixed = fixedFieldsOf(owner)
  const attributeOf = (field: string) =>
    definitions?.attributes.find(
      each => each.owner === owner && each.state === 'active' && attributePrefix + each.key === field,
    )
  return {
    typeOf: field => {
      const attribute = attributeOf(field)
      if (attribute) return typeOfAttribute(attribute)
      return Object.hasOwn(fixed, field) ? fixed[field]! : 'json'
    },
    targetOf: field => {
      const attribute = attributeOf(field)
      const target = attribute && targetOfAttribute(attribute)
      return target === undefined ? undefined : fieldTypesOf(target, definitions)
    },
  }
}
