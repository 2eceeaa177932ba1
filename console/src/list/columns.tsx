import type { Definitions } from '@kith/client'
import { type ReactNode, useMemo } from 'react'
import { type Formats, useFormats, useMessages } from '../app/language.tsx'
import { phoneOf } from '../entity/entities.ts'
import { EntityLink } from '../entity/entity-link.tsx'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { Targets } from '../entity/value.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import { type FilterField, fieldsOf } from '../filters/fields.ts'
import { messages as filterMessages } from '../filters/messages.ts'
import { Badge } from '../ui/page.tsx'
import type { Column } from '../ui/virtual-table.tsx'
import styles from './list.module.css'
import { messages } from './messages.ts'
import type { Row } from './queries.ts'

/** Fields that the first column shows already. */
const hiddenFields = (owner: string, definitions: Definitions) =>
  owner === 'people' ? ['first_name', 'last_name'] : hasLabels(owner, definitions) ? [] : ['external_id']

/** Whether the records of a stack have names. */
const hasLabels = (owner: string, { stacks }: Definitions) =>
  stacks.some(({ key, label }) => key === owner && label !== null)

/** The fields that a column can show, with their labels. Attributes are there when the definitions are. */
export function useColumnFields(owner: string): FilterField[] {
  const texts = useMessages(filterMessages)
  const { definitions } = useDefinitions()
  return useMemo(() => {
    const hidden = hiddenFields(owner, definitions)
    return fieldsOf(owner, definitions, texts).filter(({ name }) => !hidden.includes(name))
  }, [owner, definitions, texts])
}

/** The columns of the table: the name of an entity, and the chosen fields. */
export function useColumns(owner: string, names: readonly string[]): Column<Row>[] {
  const texts = useMessages(messages)
  const { definitions } = useDefinitions()
  const fields = useColumnFields(owner)
  const formats = useFormats()
  const key = names.join(',')
  return useMemo(() => {
    const isSortable = sortableFields(owner, definitions)
    const format = cellFormat(texts, formats)
    const column = (name: string): Column<Row> => {
      const field = fields.find(each => each.name === name)
      return {
        key: name,
        header:
          field?.label ?? (name === 'attribute_values' ? texts.values : undefined) ?? name.replace(attributePrefix, ''),
        minWidth: minWidthOf(name, field),
        ...(field?.type === 'number' && { align: 'end' }),
        ...(field && isSortable(field) && { sortField: name }),
        render: row =>
          name === 'mobile_number' ? cut(phoneOf(row)) : format(field, fieldValue(row, name), labelsOf(row, name)),
      }
    }
    const first: Column<Row> =
      owner === 'people'
        ? { key: 'name', header: texts.name, minWidth: 220, grow: 1.6, sortField: 'last_name', render }
        : hasLabels(owner, definitions)
          ? { key: 'label', header: texts.name, minWidth: 220, grow: 1.6, render }
          : { key: 'external_id', header: texts.identifier, minWidth: 180, sortField: 'external_id', render }
    function render(row: Row) {
      return <NameCell owner={owner} row={row} />
    }
    return [first, ...key.split(',').filter(Boolean).map(column)]
  }, [owner, texts, definitions, fields, formats, key])
}

/** The minimum widths of columns in pixels, if the default would cut values or the header. */
const minWidths: Record<string, number> = { email: 215, mobile_number: 170, language: 100, attribute_values: 240 }

const minWidthOf = (name: string, field: FilterField | undefined) =>
  minWidths[name] ?? (field?.type === 'datetime' ? 200 : field?.type === 'relation' ? 200 : 130)

/** The fields that can be sorted. An attribute without an index may get one. */
function sortableFields(owner: string, definitions: Definitions) {
  const attributes = attributesOf(definitions, owner)
  return ({ name, type }: FilterField) =>
    type !== 'relation' &&
    type !== 'json' &&
    type !== 'state' &&
    attributes.get(name.replace(attributePrefix, ''))?.cardinality !== 'many'
}

/** The value of a field by its name. */
function fieldValue(row: Row, name: string): unknown {
  return name.startsWith(attributePrefix) ? row.attribute_values?.[name.slice(attributePrefix.length)] : row[name]
}

/** The names of the targets of a relationship. */
const labelsOf = (row: Row, name: string) => row.relationship_labels?.[name.slice(attributePrefix.length)]

/** The name of an entity, or null. */
export const nameOf = ({ label, first_name, last_name, email, external_id }: Row): string | null =>
  label || [first_name, last_name].filter(Boolean).join(' ') || (email as string | null | undefined) || external_id

function NameCell({ owner, row }: { owner: string; row: Row }) {
  const texts = useMessages(messages)
  const name = nameOf(row) ?? (owner === 'people' ? texts.noName : row.id)
  return (
    <span className={styles.nameCell}>
      <EntityLink owner={owner} id={row.id} externalId={row.external_id} className={styles.name}>
        <bdi>{cut(name)}</bdi>
      </EntityLink>
      {row.state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
    </span>
  )
}

/** A cell shows one line, and the first targets of a relationship. The page of the entity shows the whole value. */
const [maxShown, maxTargets] = [200, 5]
const cut = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown)}…` : text)

/**
 * Formats values by the types of their fields. A value of another type, which is older than the declaration, is
 * unchanged.
 */
function cellFormat(texts: (typeof messages)['en'], formats: Formats) {
  const format = (field: FilterField | undefined, value: unknown): string => {
    if (value === null || value === undefined) return ''
    if (typeof value === 'boolean') return value ? texts.yes : texts.no
    if (typeof value === 'number') return formats.exactNumber(value)
    if (Array.isArray(value))
      return value
        .slice(0, 20)
        .map(element => format(field, element))
        .join(', ')
    if (typeof value !== 'string') return JSON.stringify(value)
    if (field?.type === 'date') return formats.day(value)
    if (field?.type === 'datetime') return formats.dateTime(value)
    return value
  }
  return (field: FilterField | undefined, value: unknown, labels: Record<string, string> | undefined): ReactNode => {
    if (field?.target === undefined || value === null || value === undefined) return cut(format(field, value))
    const targets = [value].flat()
    return (
      <span className={styles.cell}>
        <Targets owner={field.target} value={targets.slice(0, maxTargets)} labels={labels} />
        {targets.length > maxTargets && ` … ${targets.length}`}
      </span>
    )
  }
}
