import { type Attribute, profileFieldNames, profileFields } from '@kith/client'

export type FieldKind = 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'json' | 'link'

/** The members of an attribute that decide how its values are edited. */
export type EditedAttribute = Pick<Attribute, 'key' | 'type' | 'cardinality'> & Partial<Attribute>

type Values = Record<string, unknown>

/** The suggestions of a field: the stored values of an indexed field, or the targets of a relationship by name. */
export type Suggested = { owner: string; field: string } | { target: string }

/** A value of a person or record that a form edits. */
export type Field = {
  /** The JSON Pointer of the value in the body of a write. The details of a refusal name it, too. */
  path: string
  key: string
  label: string
  kind: FieldKind
  isMany: boolean
  /** The values that the attribute allows. */
  allowed?: readonly (string | number | boolean)[] | undefined
  /** The owner of the targets of a relationship. */
  target?: string | undefined
  help?: string | undefined
  isRequired?: boolean | undefined
  /** The source of the suggestions that appear while a person types. */
  suggested?: Suggested | undefined
  /** Whether the key of the value is not declared. */
  isUndeclared?: boolean
}

/** A value in a form: the text of a field, or the texts of a list. An empty text is no value. */
export type Draft = string | string[]

const escapePointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')
const attributePrefix = '/attribute_values/'

/** The fields of a person that a write sets, in the order of reads. Other fields follow from the consent answers. */
export const plainFields = profileFieldNames.filter(name => !profileFields[name].isSummary)
type PlainField = (typeof plainFields)[number]

/** The typed email and phone of a form. */
export function contactIn(fields: readonly Field[], draft: (field: Field) => Draft) {
  const typed = (key: string) => {
    const field = fields.find(({ path }) => path === `/${key}`)
    return field ? String(draft(field)) : ''
  }
  return { email: typed('email'), prefix: typed('mobile_prefix'), number: typed('mobile_number') }
}

/** The field of a person by its name, with its label. */
export const personField = (
  name: PlainField | 'external_id',
  labels: Record<string, string>,
  more: Partial<Field> = {},
): Field => ({
  ...{ path: `/${name}`, key: name, label: labels[name]!, isMany: false },
  kind: name === 'external_id' ? 'text' : profileFields[name].type,
  ...more,
})

/** The field of a declared attribute. */
export function attributeField(attribute: EditedAttribute, value: unknown): Field {
  const { key, name, description, type, cardinality, required } = attribute
  const kind = isRelationship(attribute) ? 'link' : (type as FieldKind)
  const field: Field = {
    path: attributePrefix + escapePointer(key),
    key,
    label: name || key,
    kind,
    isMany: cardinality === 'many',
    allowed: attribute.enum ?? undefined,
    target: isRelationship(attribute) ? targetOwner(attribute) : undefined,
    help: description ?? undefined,
    isRequired: required,
    suggested: suggestedFor(attribute),
  }
  // A value that is older than the declaration may have another type. It is edited as JSON.
  return fits(field, value) ? field : { ...field, kind: 'json', isMany: false, allowed: undefined }
}

function suggestedFor(attribute: EditedAttribute): Suggested | undefined {
  if (isRelationship(attribute)) return { target: targetOwner(attribute) }
  const { owner, key, type, indexed } = attribute
  return owner !== undefined && type === 'text' && indexed ? { owner, field: `attribute_values.${key}` } : undefined
}

/** The field of an undeclared key. It is edited by the type of its value, and as JSON if this is unclear. */
export function undeclaredField(key: string, value?: unknown): Field {
  const isMany = Array.isArray(value) && value.length > 0
  const kinds = new Set((isMany ? value : [value]).map(kindOfValue))
  const [kind = 'json'] = kinds.size === 1 ? kinds : []
  return {
    path: attributePrefix + escapePointer(key),
    key,
    label: key,
    kind,
    isMany: isMany && kind !== 'json',
    isUndeclared: true,
  }
}

/** An empty text is edited as JSON, because a text field would clear it. */
function kindOfValue(value: unknown): FieldKind {
  if (typeof value === 'string') return value.trim() === '' ? 'json' : 'text'
  return typeof value === 'number' || typeof value === 'boolean' ? (typeof value as 'number' | 'boolean') : 'json'
}

/**
 * The fields of the attribute values of an entity: of attributes, and of undeclared keys. A read has no values if the
 * role of the session closes all attributes.
 */
export function attributeFields(attributes: ReadonlyMap<string, EditedAttribute>, values: Values = {}) {
  const used = [...attributes.values()].filter(({ key, state }) => state === 'active' || values[key] !== undefined)
  return {
    declared: used.map(attribute => attributeField(attribute, values[attribute.key])),
    undeclared: Object.keys(values)
      .filter(key => !attributes.has(key))
      .map(key => undeclaredField(key, values[key])),
  }
}

const jsTypes: Partial<Record<FieldKind, string>> = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  date: 'string',
  datetime: 'string',
  link: 'string',
}

function fits({ kind, isMany }: Field, value: unknown): boolean {
  if (value === undefined || value === null) return true
  const isOfKind = (item: unknown) =>
    kind === 'json' || (typeof item === jsTypes[kind] && isOfFormat(kind, item as string))
  return isMany ? Array.isArray(value) && value.every(isOfKind) : isOfKind(value)
}

/** The browser's fields for dates and times show no other text. */
function isOfFormat(kind: FieldKind, text: string): boolean {
  if (kind === 'date') return /^\d{4}-\d{2}-\d{2}$/.test(text)
  return kind !== 'datetime' || !Number.isNaN(Date.parse(text))
}

const isAttribute = ({ path }: Field) => path.startsWith(attributePrefix)

/** The name of a field in a role. */
export const nameOfField = (field: Field): string => (isAttribute(field) ? `attribute_values.${field.key}` : field.key)

/** The value of a field in a read. */
export const storedValue = (field: Field, entity: Values & { attribute_values: Values }): unknown =>
  (isAttribute(field) ? entity.attribute_values[field.key] : entity[field.key]) ?? null

/** The text of a value in a field. An empty list has one empty text. */
export function draftOf(field: Field, value: unknown): Draft {
  const [first = '', ...others] = itemsOf(field, value).map(item => textOf(field, item))
  return field.isMany ? [first, ...others] : first
}

function itemsOf({ isMany }: Field, value: unknown): unknown[] {
  if (value === null) return []
  return isMany && Array.isArray(value) ? value : [value]
}

function textOf({ kind, allowed }: Field, value: unknown): string {
  if (kind === 'json' || allowed) return JSON.stringify(value, null, kind === 'json' ? 2 : 0)
  if (kind === 'datetime') return localTime(value as string)
  return String(value)
}

/** A moment in the time zone of the browser, in the format of a `datetime-local` field. Empty for any other text. */
export function localTime(moment: string | number | Date): string {
  const date = new Date(moment)
  if (Number.isNaN(date.getTime())) return ''
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString()
  return local.replace(/(\.000)?Z$/, '')
}

/**
 * The moment, RFC 3339 in UTC, of the text of a `datetime-local` field. Undefined for a text that is no time, and for a
 * time that clocks in the browser's time zone skip, because the browser would move it.
 */
export function momentOf(localText: string): string | undefined {
  const date = new Date(localText)
  return localTime(date).slice(0, 16) === localText.slice(0, 16) && localText !== '' ? date.toISOString() : undefined
}

/** Why a draft is invalid. `json` has the message of the parser. */
export type DraftFault = { reason: 'number' | 'exactNumber' | 'datetime' } | { reason: 'json'; words: string }

export type Parsed = { value: unknown; fault?: never } | { fault: DraftFault; value?: never }

/**
 * The value of a draft for a write. Null clears. An unchanged text keeps the stored value, because the text of a moment
 * or a number may be less exact, and an unchanged item of a list must stay identical.
 */
export function parseDraft(field: Field, draft: Draft, stored: unknown = null): Parsed {
  const known = new Map(itemsOf(field, stored).map(item => [textOf(field, item), item]))
  const parse = (text: string): Parsed => (known.has(text) ? { value: known.get(text) } : parseText(field, text))
  if (!Array.isArray(draft)) return isBlank(draft) ? { value: null } : parse(draft)
  const items = draft.filter(text => !isBlank(text)).map(parse)
  const fault = items.find(item => item.fault)
  if (fault) return fault
  return { value: items.length === 0 ? null : items.map(({ value }) => value) }
}

const isBlank = (text: string) => text.trim() === ''

function parseText(field: Field, text: string): Parsed {
  const { kind, allowed } = field
  if (kind === 'json' || allowed) return parseJson(text)
  if (kind === 'number') return parseNumber(text.trim())
  if (kind === 'boolean') return { value: text === 'true' }
  if (kind === 'datetime') {
    const value = momentOf(text)
    return value === undefined ? { fault: { reason: 'datetime' } } : { value }
  }
  // Spaces at the ends of an attribute may be intended. In a name or an identifier they are a mistake.
  return { value: isAttribute(field) ? text : text.trim() }
}

function parseJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: { reason: 'json', words: (error as Error).message } }
  }
}

/** A JSON number. The browser's double may differ from a number of more than 15 digits. */
function parseNumber(text: string): Parsed {
  if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return { fault: { reason: 'number' } }
  const digits = text
    .replace(/[eE].*$/, '')
    .replaceAll(/[-.]/g, '')
    .replace(/^0+/, '')
  const value = Number(text)
  const isExact = String(value) === text || (digits.length <= 15 && Number.isFinite(value))
  return isExact ? { value } : { fault: { reason: 'exactNumber' } }
}

/** The body of the write of the values. */
export function bodyOf(changes: ReadonlyMap<Field, unknown>): Record<string, unknown> {
  const entries = [...changes]
  const attributes = entries.filter(([field]) => isAttribute(field)).map(([{ key }, value]) => [key, value] as const)
  return {
    ...Object.fromEntries(entries.filter(([field]) => !isAttribute(field)).map(([{ key }, value]) => [key, value])),
    ...(attributes.length > 0 && { attribute_values: Object.fromEntries(attributes) }),
  }
}

type Target = { type: string; target_stack?: string | null }

export const isRelationship = ({ type }: Target): boolean => type === 'person' || type === 'stack'

/** The owner of the targets of a relationship: `people`, or the key of a stack. */
export const targetOwner = ({ type, target_stack }: Target): string =>
  type === 'person' ? 'people' : (target_stack ?? '')

/** Whether a value of a change is a target that has been erased. */
export const isErasedTarget = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'erased' in value && value.erased === true
