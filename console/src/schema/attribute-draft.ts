import { type Attribute, type AttributePatch, attributeRules, type NewAttribute, type RuleName } from '@kith/client'
import { isEqual } from '../entity/equal.ts'

export type AttributeType = Attribute['type']

/** The content of the form of an attribute: texts as they were typed. */
export type AttributeDraft = {
  key: string
  name: string
  description: string
  type: AttributeType
  target_stack: string | null
  cardinality: 'one' | 'many'
  indexed: boolean
  searchable: boolean
  required: boolean
  unique: boolean
  /** The allowed values, one a line. */
  allowed: string
  pattern: string
  minimum: string
  maximum: string
}

export const emptyDraft: AttributeDraft = {
  key: '',
  name: '',
  description: '',
  type: 'text',
  target_stack: null,
  cardinality: 'one',
  indexed: false,
  searchable: false,
  required: false,
  unique: false,
  allowed: '',
  pattern: '',
  minimum: '',
  maximum: '',
}

export function draftOf(attribute: Attribute): AttributeDraft {
  const { key, name, type, target_stack, cardinality, indexed, searchable, required, unique, pattern } = attribute
  return {
    ...{ key, name, type, target_stack, cardinality, indexed, searchable, required, unique },
    description: attribute.description ?? '',
    allowed: attribute.enum?.join('\n') ?? '',
    pattern: pattern ?? '',
    minimum: attribute.minimum === null ? '' : String(attribute.minimum),
    maximum: attribute.maximum === null ? '' : String(attribute.maximum),
  }
}

/** Whether an attribute of a type can have a rule. */
export const takesRule = (type: AttributeType, rule: RuleName): boolean =>
  (attributeRules[rule] as readonly AttributeType[]).includes(type)

/** A typed text as a value of the type. A text that does not parse stays a text, and the service refuses it with its reason. */
function parsedValue(type: AttributeType, text: string): string | number | boolean {
  if (type === 'number') return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return text
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

const boundOf = (type: AttributeType, text: string) =>
  text.trim() === '' ? null : (parsedValue(type, text.trim()) as string | number)

/** The members of an attribute that the form can change. */
function membersOf(draft: AttributeDraft) {
  const { key, name, description, type, cardinality, indexed, searchable, required, unique, pattern } = draft
  const allowed = linesOf(draft.allowed).map(line => parsedValue(type, line))
  const takes = (rule: RuleName) => takesRule(type, rule)
  return {
    name: name.trim() || key,
    description: description.trim() || null,
    ...{ cardinality, indexed, searchable: type === 'text' && searchable, required },
    unique: takes('unique') && unique,
    enum: takes('enum') && allowed.length > 0 ? allowed : null,
    pattern: takes('pattern') && pattern !== '' ? pattern : null,
    minimum: takes('minimum') ? boundOf(type, draft.minimum) : null,
    maximum: takes('maximum') ? boundOf(type, draft.maximum) : null,
  }
}

/** The body that changes an attribute to what the form holds: only the members that differ. */
export function patchOf(attribute: Attribute, draft: AttributeDraft): AttributePatch {
  const members = Object.entries(membersOf(draft))
  return Object.fromEntries(members.filter(([name, value]) => !isEqual(attribute[name as keyof Attribute], value)))
}

/** The body that declares an attribute as the form has it. Members with their default are left out. */
export function newAttributeOf(owner: string, draft: AttributeDraft): NewAttribute {
  const { key, type, target_stack } = draft
  const members = Object.entries(membersOf(draft)).filter(([, value]) => value !== null && value !== false)
  return { key: key.trim(), owner, type, ...(type === 'stack' && { target_stack }), ...Object.fromEntries(members) }
}
