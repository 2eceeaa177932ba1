import type { Attribute } from '@kith/client'
import type { Entity } from './entities.ts'
import { isRelationship } from './schema.ts'

export type FieldKind = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'json' | 'link'

/** A value of a person or record that a form edits. */
export type Field = {
  /** The JSON Pointer of the value in the body of a write, which the details of a refusal name, too. */
  path: string
  key: string
  label: string
  kind: FieldKind
  isMany: boolean
  /** The values that the attribute allows. */
  allowed?: readonly (string | number | boolean)[] | undefined
  help?: string | undefined
  isRequired?: boolean
  /** Whether the key of the value is not declared. */
  isUndeclared?: boolean
}

/** A value as a form holds it: the text of a field, or the texts of a list. An empty text is no value. */
export type Draft = string | string[]

const escapePointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')
const attributePrefix = '/attribute_values/'

export const profileField = (
  key: string,
  label: string,
  kind: FieldKind = 'text',
  more: Partial<Field> = {},
): Field => ({ path: `/${key}`, key, label, kind, isMany: false, ...more })

/** The field of a declared attribute. */
export function attributeField(attribute: Attribute, value: unknown): Field {
  const { key, name, description, type, cardinality, required } = attribute
  const kind = isRelationship(attribute) ? 'link' : (type as FieldKind)
  const field: Field = {
    path: attributePrefix + escapePointer(key),
    key,
    label: name || key,
    kind,
    isMany: cardinality === 'many',
    allowed: attribute.enum ?? undefined,
    help: description ?? undefined,
    isRequired: required,
  }
  // A value that was stored before the declaration may have another type. It is shown as it is.
  return fits(field, value) ? field : { ...field, kind: 'json', isMany: false, allowed: undefined }
}

/** The field of a key that is not declared. Its value may be anything, so it is edited as JSON. */
export const undeclaredField = (key: string): Field => ({
  path: attributePrefix + escapePointer(key),
  key,
  label: key,
  kind: 'json',
  isMany: false,
  isUndeclared: true,
})

const jsTypes: Partial<Record<FieldKind, string>> = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  date: 'string',
  datetime: 'string',
  link: 'string',
}

function fits({ kind, isMany }: Field, value: unknown): boolean {
  const type = jsTypes[kind]
  if (value === undefined || value === null || type === undefined) return true
  if (isMany) return Array.isArray(value) && value.every(item => typeof item === type)
  return typeof value === type && !(kind === 'datetime' && Number.isNaN(Date.parse(value as string)))
}

const isAttribute = ({ path }: Field) => path.startsWith(attributePrefix)

/** The value of a field in a read. */
export const storedValue = (field: Field, entity: Entity): unknown =>
  (isAttribute(field) ? entity.attribute_values[field.key] : entity[field.key]) ?? null

/** The text of a value in a field. */
export function draftOf(field: Field, value: unknown): Draft {
  if (field.isMany) return value === null ? [] : (value as unknown[]).map(item => textOf(field, item))
  return value === null ? '' : textOf(field, value)
}

function textOf({ kind, allowed }: Field, value: unknown): string {
  if (kind === 'json' || allowed) return JSON.stringify(value, null, kind === 'json' ? 2 : 0)
  if (kind === 'datetime') return localTime(value as string)
  return String(value)
}

/** A moment in the time zone of the browser, as a field of type `datetime-local` has it. */
export function localTime(moment: string | number | Date): string {
  const date = new Date(moment)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

/** The fault of a draft. The page has a text for each. */
export type DraftFault = 'number' | 'exactNumber' | 'json' | 'datetime'

export type Parsed = { value: unknown; fault?: never } | { fault: DraftFault; value?: never }

/** The value of a draft, as a write sends it. Null clears. */
export function parseDraft(field: Field, draft: Draft): Parsed {
  if (!Array.isArray(draft)) return draft === '' ? { value: null } : parseText(field, draft)
  const items = draft.filter(text => text !== '').map(text => parseText(field, text))
  const fault = items.find(item => item.fault)
  if (fault) return fault
  return { value: items.length === 0 ? null : items.map(({ value }) => value) }
}

function parseText({ kind, allowed }: Field, text: string): Parsed {
  if (kind === 'json' || allowed) return parseJson(text)
  if (kind === 'number') return parseNumber(text.trim())
  if (kind === 'boolean') return { value: text === 'true' }
  if (kind === 'datetime') {
    const time = Date.parse(text)
    return Number.isNaN(time) ? { fault: 'datetime' } : { value: new Date(time).toISOString() }
  }
  return { value: text }
}

function parseJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { fault: 'json' }
  }
}

/** A number of JSON. A number of more than 15 digits may not be equal to the double that the browser makes of it. */
function parseNumber(text: string): Parsed {
  if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return { fault: 'number' }
  const digits = text
    .replace(/[eE].*$/, '')
    .replaceAll(/[-.]/g, '')
    .replace(/^0+/, '')
  const value = Number(text)
  return digits.length > 15 || !Number.isFinite(value) ? { fault: 'exactNumber' } : { value }
}

/** The body of the PATCH that writes the values. */
export function patchOf(changes: ReadonlyMap<Field, unknown>): Record<string, unknown> {
  const entries = [...changes]
  const attributes = entries.filter(([field]) => isAttribute(field)).map(([{ key }, value]) => [key, value] as const)
  return {
    ...Object.fromEntries(entries.filter(([field]) => !isAttribute(field)).map(([{ key }, value]) => [key, value])),
    ...(attributes.length > 0 && { attribute_values: Object.fromEntries(attributes) }),
  }
}
