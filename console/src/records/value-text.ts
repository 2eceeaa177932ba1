/** The members of an attribute that decide how its values are edited. */
export type EditedAttribute = {
  type: 'text' | 'number' | 'boolean' | 'date' | 'datetime' | 'json' | 'person' | 'stack'
  cardinality: 'one' | 'many'
}

/** How a value is edited: as one text, as a text with a value on each line, or as JSON. */
export type ValueForm = 'plain' | 'lines' | 'json'

const isScalar = (value: unknown) =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

const scalarTypes: Record<EditedAttribute['type'], string> = {
  text: 'string',
  number: 'number',
  boolean: 'boolean',
  date: 'string',
  datetime: 'string',
  person: 'string',
  stack: 'string',
  json: 'none',
}

/** The form for a value of an attribute. A value that does not fit the attribute, and one without an attribute, is edited as JSON. */
export function formOf(attribute: EditedAttribute | undefined, value: unknown): ValueForm {
  if (!attribute || attribute.type === 'json') return 'json'
  const fits = (item: unknown) => typeof item === scalarTypes[attribute.type]
  if (value === null || value === undefined) return attribute.cardinality === 'many' ? 'lines' : 'plain'
  if (attribute.cardinality === 'one') return fits(value) ? 'plain' : 'json'
  const isList = Array.isArray(value) && value.every(item => fits(item) && !String(item).includes('\n'))
  return isList ? 'lines' : 'json'
}

/** A value as the text that is edited. */
export function textOf(form: ValueForm, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (form === 'json') return JSON.stringify(value, null, 2)
  if (form === 'lines') return (value as unknown[]).filter(isScalar).join('\n')
  return String(value)
}

/** Why a text is no value. `json` has the parser's own words. */
export type ParseFault = { reason: 'number' | 'boolean' } | { reason: 'json'; words: string }

type Parsed = { value: unknown } | { fault: ParseFault }

/** The value of an edited text. An empty text is null, which clears the value. */
export function valueOfText(form: ValueForm, attribute: EditedAttribute | undefined, text: string): Parsed {
  if (text.trim() === '') return { value: null }
  if (form === 'json') return parseJson(text)
  if (form === 'plain') return parseScalar(attribute!.type, text)
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .map(line => parseScalar(attribute!.type, line))
  const faulty = lines.find(line => 'fault' in line)
  return faulty ?? { value: lines.map(line => ('value' in line ? line.value : null)) }
}

function parseJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: { reason: 'json', words: (error as Error).message } }
  }
}

function parseScalar(type: EditedAttribute['type'], text: string): Parsed {
  if (type === 'number') {
    const value = Number(text)
    return Number.isFinite(value) ? { value } : { fault: { reason: 'number' } }
  }
  if (type === 'boolean')
    return text === 'true' || text === 'false' ? { value: text === 'true' } : { fault: { reason: 'boolean' } }
  return { value: text }
}

/** A moment as a field of the browser for date and time takes it, in its time zone. Empty if the text is no moment. */
export function localMoment(text: string): string {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) return ''
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1)
  return local.replace(/(:00)?\.000$/, '')
}

/** The moment of such a field in UTC. */
export const momentOfLocal = (local: string): string => (local === '' ? '' : new Date(local).toISOString())
