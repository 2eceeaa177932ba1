import { type Definitions, isRelationship, peopleStackId } from '../organizations/definitions.ts'
import type { ProfileText } from '../values/profile-fields.ts'

/**
 * A part of a template: a literal text, or an attribute. With `hop`, it is an attribute of the target of a
 * relationship.
 */
export type LabelPart = string | { key: string; hop?: string }

export const maxLabelLength = 200

/** The fields of a person that a label may show. */
export const labelFields = [
  'first_name',
  'last_name',
  'email',
  'mobile_prefix',
  'mobile_number',
] as const satisfies readonly ProfileText[]

export const isLabelField = (key: string): key is (typeof labelFields)[number] =>
  (labelFields as readonly string[]).includes(key)

const pieces = /\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+/g
const reference = /^([a-z][a-z0-9_]{0,62})(?:\.([a-z][a-z0-9_]{0,62}))?$/

/** Parses a template: `{key}` and `{relationship.key}` between literal texts, where `{{` and `}}` are braces. */
export function parseLabel(template: string): { parts: LabelPart[] } | { fault: string } {
  const parts: LabelPart[] = []
  const literal = (text: string) =>
    typeof parts.at(-1) === 'string' ? parts.push(`${parts.pop()}${text}`) : parts.push(text)
  for (const [piece, named] of template.matchAll(pieces)) {
    if (named !== undefined) {
      const [, key, hop] = reference.exec(named) ?? []
      if (key === undefined) return { fault: `${piece} is neither {key} nor {relationship.key}` }
      parts.push(hop === undefined ? { key } : { key, hop })
    } else if (piece === '{' || piece === '}')
      return { fault: 'has a single brace: write {{ or }} for a brace in the text' }
    else literal(piece === '{{' || piece === '}}' ? piece[0]! : piece)
  }
  if (parts.every(part => typeof part === 'string')) return { fault: 'must name an attribute, such as {name}' }
  return { parts }
}

/** Finds the first fault of a stack's template: a malformed part, or an undeclared name. */
export function findLabelFault(template: string, stack_id: number, definitions: Definitions): string | undefined {
  const parsed = parseLabel(template)
  if ('fault' in parsed) return parsed.fault
  return parsed.parts.flatMap(part =>
    typeof part === 'string' ? [] : (partFault(part, stack_id, definitions) ?? []),
  )[0]
}

function partFault({ key, hop }: { key: string; hop?: string }, stack_id: number, { declared }: Definitions) {
  const attribute = declared.get(stack_id)?.get(key)
  if (!attribute) return `names {${key}}, which is not a declared attribute of the stack`
  if (attribute.type === 'json') return `names {${key}}, which has JSON: name an attribute of another type`
  if (hop === undefined) return undefined
  if (!isRelationship(attribute)) return `names {${key}.${hop}}, but {${key}} is not a relationship`
  if (attribute.target_stack_id === peopleStackId && isLabelField(hop)) return undefined
  const target = declared.get(attribute.target_stack_id)?.get(hop)
  if (!target) return `names {${key}.${hop}}, which is not a declared attribute of the target`
  if (isRelationship(target)) return `names {${key}.${hop}}: a label follows one relationship only`
  return target.type === 'json' ? `names {${key}.${hop}}, which has JSON: name an attribute of another type` : undefined
}

/** The text of a value in a label. The elements of a list are separated by commas, and an object has no text. */
export function labelText(value: unknown): string {
  if (Array.isArray(value)) return value.map(scalarText).filter(Boolean).join(', ')
  return scalarText(value)
}

function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? tidy(String(value)) : ''
}

/** Reduces white space to single spaces, trims the ends, and cuts the text to the length of a label. */
function tidy(text: string): string {
  const spaced = text.replace(/\s+/g, ' ').trim()
  if (spaced.length <= maxLabelLength) return spaced
  return [...spaced].slice(0, maxLabelLength).join('').trimEnd()
}

/**
 * Fills in a template. The label is empty if no part has a value. Separators and brackets around a missing value are
 * left out.
 */
export function fillLabel(parts: readonly LabelPart[], textOf: (part: Exclude<LabelPart, string>) => string): string {
  let text = ''
  let literal = ''
  let isMissing = false
  for (const part of parts) {
    if (typeof part === 'string') {
      literal += part
      continue
    }
    const value = textOf(part)
    if (value === '') {
      isMissing = true
      continue
    }
    text += (isMissing ? aroundMissing(literal, text === '' ? 'start' : 'middle') : literal) + value
    literal = ''
    isMissing = false
  }
  if (text === '') return ''
  return tidy(text + (isMissing ? aroundMissing(literal, 'end') : literal))
}

const separators = '[\\s,;:·•/|–—-]'
const startingSeparators = new RegExp(`^${separators}+`)
const endingSeparators = new RegExp(`${separators}+$`)
const repeated: [RegExp, string] = [/([,;:·•/|–—-])(?:\s*[,;:·•/|–—-])+/g, '$1']
/**
 * The patterns around a missing value, in the order of their removal, and their replacements. After the first two, the
 * runs are short.
 */
const leftovers: [RegExp, string][] = [
  [/\s+/g, ' '],
  repeated,
  [new RegExp(`([([])${separators}+`, 'g'), '$1'],
  [new RegExp(`${separators}+([)\\]])`, 'g'), '$1'],
  [/\(\)|\[\]/g, ''],
  repeated,
  [/\s+([,;:])/g, '$1'],
]

/** The literal text around a missing value, without empty brackets and unneeded separators. */
function aroundMissing(literal: string, where: 'start' | 'middle' | 'end'): string {
  const kept = leftovers.reduce((text, [leftover, rest]) => text.replace(leftover, rest), literal)
  if (where === 'start') return kept.replace(startingSeparators, '')
  return where === 'end' ? kept.replace(endingSeparators, '') : kept
}

export type NamedPerson = Readonly<Record<(typeof labelFields)[number], string | null>>

/** The name of a person: first and last name, else the email, else the phone. Empty if the person has none of them. */
export function personName({ first_name, last_name, email, mobile_prefix, mobile_number }: NamedPerson): string {
  const joined = (...texts: (string | null)[]) => tidy(texts.map(labelText).filter(Boolean).join(' '))
  return joined(first_name, last_name) || joined(email) || (mobile_number ? joined(mobile_prefix, mobile_number) : '')
}
