import { type Attribute, profileFields } from '@kith/client'
import type { FieldType } from './filter-tree.ts'
import type { FieldTypes } from './read-filter.ts'

/** The owner of fields: `people`, or the key of a stack. */
export type Owner = string

/** The members of an attribute that determine how a filter tests it. */
export type TestedAttribute = Pick<Attribute, 'owner' | 'key' | 'type' | 'target_stack' | 'state'>

export const attributePrefix = 'attribute_values.'

/** The prefix of a field for the entities that link here. The owner and the key of their relationship follow. */
export const incomingPrefix = 'incoming.'
export const incomingField = ({ owner, key }: Pick<TestedAttribute, 'owner' | 'key'>): string =>
  `${incomingPrefix}${owner}.${key}`

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

/** The active relationships that lead to an owner. */
export function incomingAttributes<Tested extends TestedAttribute>(
  owner: Owner,
  definitions: { attributes: readonly Tested[] } | undefined,
): Tested[] {
  return (definitions?.attributes ?? []).filter(each => each.state === 'active' && targetOfAttribute(each) === owner)
}

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
  const incomingOf = (field: string) =>
    field.startsWith(incomingPrefix)
      ? incomingAttributes(owner, definitions).find(each => incomingField(each) === field)
      : undefined
  return {
    typeOf: field => {
      const attribute = attributeOf(field)
      if (attribute) return typeOfAttribute(attribute)
      if (incomingOf(field)) return 'incoming'
      return Object.hasOwn(fixed, field) ? fixed[field]! : 'json'
    },
    targetOf: field => {
      const attribute = attributeOf(field)
      const target = attribute ? targetOfAttribute(attribute) : incomingOf(field)?.owner
      return target === undefined ? undefined : fieldTypesOf(target, definitions)
    },
  }
}
