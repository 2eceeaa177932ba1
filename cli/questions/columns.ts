import type { Person } from '../../client/index.ts'
import { attributePrefix } from '../../src/values/profile-fields.ts'
import { type Column, isJson, type Row, type RowFormat } from '../print-rows.ts'

const defaultFields = {
  people: ['external_id', 'first_name', 'last_name', 'email', 'mobile_number', 'state', 'created_at'],
  records: ['external_id', 'attribute_values', 'state', 'created_at'],
}

/** The fields to request: the chosen ones, else the default columns. JSON has whole entities by default. */
export function fieldsFor(
  chosen: string[] | undefined,
  format: RowFormat,
  kind: 'people' | 'records',
): string[] | undefined {
  return chosen ?? (isJson(format) ? undefined : defaultFields[kind])
}

/**
 * The columns of a table or of CSV: one for each field, then one for each included relationship. In a table, the
 * attributes of the first rows replace `attribute_values`.
 */
export function entityColumns(
  fields: readonly string[],
  include: readonly string[],
  format: RowFormat,
): (rows: readonly Row[]) => Column[] {
  return rows => [
    ...fields.flatMap(field =>
      field === 'attribute_values' && format === 'table' ? attributeColumns(rows) : [columnOf(field)],
    ),
    ...include.map(includedColumn),
  ]
}

function columnOf(name: string): Exclude<Column, string> {
  if (!name.startsWith(attributePrefix)) return { name }
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

/** The display name of a person, or the identifier of another entity. */
function nameOf(entity: unknown): string {
  const { first_name, last_name, external_id, id, record_id } = entity as Record<string, string | null | undefined>
  return [first_name, last_name].filter(Boolean).join(' ') || (external_id ?? id ?? record_id ?? '')
}

/** The members of one entity that have a value, as rows. Each attribute value and each consent has its own row. */
export function membersOf(entity: Row): Row[] {
  return Object.entries(entity).flatMap(([field, value]): Row[] => {
    if (value === null) return []
    if (field === 'attribute_values')
      return Object.entries(value as Row).map(([key, each]) => ({ field: attributePrefix + key, value: each }))
    if (field === 'relationship_labels')
      return Object.entries(value as Row).map(([key, each]) => ({
        field: `${field}.${key}`,
        value: Object.values(each as Row).join(', '),
      }))
    if (field === 'consents') return (value as Person['consents']).map(consentRow)
    return [{ field, value }]
  })
}

function consentRow(consent: Person['consents'][number]): Row {
  const { consent_type_id, channel, state, source, answered_at, pending } = consent
  const word = pending ? 'waits for its confirmation' : state ? 'granted' : 'refused'
  const value = `${word} (${[source, answered_at].filter(Boolean).join(' ')})`
  return { field: `consents.${consent_type_id}.${channel}`, value }
}
