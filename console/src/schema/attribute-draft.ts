import {
  type Attribute,
  type AttributeBody,
  type AttributePatch,
  attributeRules,
  type RuleName,
  ruleNames,
} from '@kith/client'
import { isEqual } from '../entity/equal.ts'

type AttributeType = Attribute['type']

/** The content of the form of an attribute, as typed texts. */
export type AttributeDraft = Pick<
  Attribute,
  'key' | 'name' | 'type' | 'target_stack' | 'cardinality' | 'indexed' | 'searchable'
> & { description: string; rules: RuleDrafts }

/** The rules: flags, and typed texts, with one element of a list per line. */
type RuleDrafts = Record<RuleName, boolean | string>

const ruleDrafts = (draftRule: (name: RuleName) => boolean | string) =>
  Object.fromEntries(ruleNames.map(name => [name, draftRule(name)])) as RuleDrafts

export const emptyDraft: AttributeDraft = {
  key: '',
  name: '',
  description: '',
  type: 'text',
  target_stack: null,
  cardinality: 'one',
  indexed: false,
  searchable: false,
  rules: ruleDrafts(name => (attributeRules[name].operand === 'flag' ? false : '')),
}

export function draftOf(attribute: Attribute): AttributeDraft {
  const draftRule = (rule: RuleName) => {
    const operand = attribute[rule]
    if (typeof operand === 'boolean') return operand
    return Array.isArray(operand) ? operand.join('\n') : String(operand ?? '')
  }
  const { key, name, type, target_stack, cardinality, indexed, searchable } = attribute
  const members = { key, name, type, target_stack, cardinality, indexed, searchable }
  return { ...members, description: attribute.description ?? '', rules: ruleDrafts(draftRule) }
}

/** Whether an attribute of a type can have a rule. */
export const takesRule = (type: AttributeType, rule: RuleName): boolean =>
  (attributeRules[rule].types as readonly AttributeType[]).includes(type)

/**
 * A typed text as a value of the type. A text that does not parse stays a text, and the service refuses it with the
 * reason.
 */
function parsedValue(type: AttributeType, text: string): string | number | boolean {
  if (type === 'number') return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  return text
}

/** The operand of a rule in the form of the service: false or null if the attribute does not have the rule. */
function operandOf(type: AttributeType, rule: RuleName, draft: boolean | string) {
  const takes = takesRule(type, rule)
  if (typeof draft === 'boolean') return takes && draft
  if (!takes || draft.trim() === '') return null
  const kind: string = attributeRules[rule].operand
  const lines = draft.split('\n').map(line => line.trim())
  if (kind === 'list') return lines.filter(line => line !== '').map(line => parsedValue(type, line))
  if (kind === 'number') return parsedValue('number', draft.trim())
  return kind === 'value' ? parsedValue(type, draft.trim()) : draft
}

/** The members of an attribute that the form can change. */
function membersOf({ key, name, description, type, cardinality, indexed, searchable, rules }: AttributeDraft) {
  return {
    name: name.trim() || key,
    description: description.trim() || null,
    ...{ cardinality, indexed, searchable: type === 'text' && searchable },
    ...Object.fromEntries(ruleNames.map(rule => [rule, operandOf(type, rule, rules[rule])])),
  }
}

/** The body that changes an attribute to the content of the form: only the members that differ. */
export function patchOf(attribute: Attribute, draft: AttributeDraft): AttributePatch {
  const members = Object.entries(membersOf(draft))
  return Object.fromEntries(members.filter(([name, value]) => !isEqual(attribute[name as keyof Attribute], value)))
}

/** The body that declares the attribute of the form. Members with their default are omitted. */
export function newAttributeOf(owner: string, draft: AttributeDraft): AttributeBody {
  const { key, type, target_stack } = draft
  const members = Object.entries(membersOf(draft)).filter(([, value]) => value !== null && value !== false)
  return { key: key.trim(), owner, type, ...(type === 'stack' && { target_stack }), ...Object.fromEntries(members) }
}
