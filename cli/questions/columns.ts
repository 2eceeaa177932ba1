import type { Person } from '../../client/index.ts'
import type { Column, OutputFormat, Row } from '../output-format.ts'

const attributePrefix = 'attribute_values.'

const defaultFields = {
  people: ['external_id', 'first_name', 'last_name', 'email', 'mobile_number', 'state', 'created_at'],
  records: ['external_id', 'attribute_values', 'state', 'created_at'],
}

/** The fields to ask for: those that were chosen, else those of the default columns. JSON has whole entities by default. */
export function fieldsFor(
  chosen: string[] | undefined,
  format: OutputFormat,
  kind: 'people' | 'records',
): string[] | undefined {
  return chosen ?? (format === 'json' ? undefined : defaultFields[kind])
}

/**
 * The columns of a table or of CSV: one for each field, then one for each included relationship. A table has a column for each attribute of
 * the first rows in place of `attribute_values`.
 */
export function entityColumns(
  fields: readonly string[],
  include: readonly string[],
  format: OutputFormat,
): (rows: readonly Row[]) => Column[] {
  return rows => [
    ...fields.flatMap(field =>
      field === 'attribute_values' && format === 'table' ? attributeColumns(rows) : [columnOf(field)],
    ),
    ...include.map(includedColumn),
  ]
}

function columnOf(name: string): Column {
  if (!name.startsWith(attributePrefix)) return { name, read: row => row[name] }
  const key = name.slice(attributePrefix.length)
  return { name, read: row => valuesOf(row)[key] }
}

const valuesOf = ({ attribute_values }: Row): Row => (attribute_values ?? {}) as Row

function attributeColumns(rows: readonly Row[]): Column[] {
  const keys = new Set(rows.flatMap(row => Object.keys(valuesOf(row))))
  return [...keys].map(key => ({ ...columnOf(attributePrefix + key), name: key }))
}

const includedColumn = (key: string): Column => ({
  name: `included.${key}`,
  read: row => (row.included as Row | undefined)?.[key],
  textOf: value => [value].flat().map(nameOf).join(', '),
})

/** The name of a person for people to read, or the identifier of an entity. */
function nameOf(entity: unknown): string {
  const { first_name, last_name, external_id, id, record_id } = entity as Record<string, string | null | undefined>
  return [first_name, last_name].filter(Boolean).join(' ') || (external_id ?? id ?? record_id ?? '')
}

/** The members of one entity that have a value, with their names. Attribute values and consents have a line each. */
export function membersOf(entity: Row): [name: string, text: string][] {
  return Object.entries(entity).flatMap(([name, value]): [string, string][] => {
    if (value === null) return []
    if (name === 'attribute_values')
      return Object.entries(value as Row).map(([key, each]) => [attributePrefix + key, textOf(each)])
    if (name === 'consents') return (value as Person['consents']).map(consentLine)
    return [[name, textOf(value)]]
  })
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function consentLine(consent: Person['consents'][number]): [string, string] {
  const { consent_type_id, channel, state, source, answered_at, pending } = consent
  const word = pending ? 'waits for its confirmation' : state ? 'granted' : 'refused'
  return [`consents.${consent_type_id}.${channel}`, `${word} (${[source, answered_at].filter(Boolean).join(' ')})`]
}
