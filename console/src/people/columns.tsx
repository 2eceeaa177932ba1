import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMemo } from 'react'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import { type FilterField, fieldsOf } from '../filters/fields.ts'
import { messages as filterMessages } from '../filters/messages.ts'
import { personAddress } from '../person/person-address.ts'
import { Badge } from '../ui/page.tsx'
import type { Column } from '../ui/virtual-table.tsx'
import { messages } from './messages.ts'
import styles from './people.module.css'
import type { PersonRow } from './people-query.ts'
import { useDefinitions } from './use-definitions.ts'

/** Fields that the name column shows already. */
const hidden = ['first_name', 'last_name']

/** The fields that a column can show, with their labels. Attributes are there when the definitions are. */
export function useColumnFields(): FilterField[] {
  const texts = useMessages(filterMessages)
  const { data: definitions } = useDefinitions()
  return useMemo(
    () => fieldsOf('people', definitions, texts).filter(({ name }) => !hidden.includes(name)),
    [definitions, texts],
  )
}

/** The columns of the table: the name, and the chosen fields. */
export function useColumns(names: readonly string[]): Column<PersonRow>[] {
  const texts = useMessages(messages)
  const fields = useColumnFields()
  const format = useCellFormat()
  const key = names.join(',')
  return useMemo(
    () => [
      {
        key: 'name',
        header: texts.name,
        minWidth: 220,
        grow: 1.6,
        sortField: 'last_name',
        render: row => <NameCell row={row} />,
      },
      ...key
        .split(',')
        .filter(name => name !== '')
        .map((name): Column<PersonRow> => {
          const field = fields.find(each => each.name === name)
          return {
            key: name,
            header: field?.label ?? name.replace(attributePrefix, ''),
            minWidth: minWidthOf(name, field),
            ...(field?.type === 'number' && { align: 'end' }),
            ...(isSortable(field) && { sortField: name }),
            render: row => (name === 'mobile_number' ? phoneOf(row) : format(field, fieldValue(row, name))),
          }
        }),
    ],
    [texts, fields, format, key],
  )
}

/** The least widths of columns in pixels, where the usual one cuts values or the header. */
const minWidths: Record<string, number> = { email: 215, mobile_number: 170, language: 100 }

const minWidthOf = (name: string, field: FilterField | undefined) =>
  minWidths[name] ?? (field?.type === 'datetime' ? 165 : 130)

const isSortable = (field: FilterField | undefined) =>
  field !== undefined && field.type !== 'relation' && field.type !== 'json' && field.type !== 'state'

/** The value of a field of a person by its name. */
export function fieldValue(row: PersonRow, name: string): unknown {
  if (name.startsWith(attributePrefix)) return row.attribute_values?.[name.slice(attributePrefix.length)]
  return row[name as keyof PersonRow]
}

const phoneOf = ({ mobile_prefix, mobile_number }: PersonRow) =>
  cut([mobile_prefix, mobile_number].filter(Boolean).join(' '))

/** A name for a person who may have none. */
export const nameOf = ({ first_name, last_name, email, external_id }: PersonRow): string | null =>
  [first_name, last_name].filter(Boolean).join(' ') || email || external_id

function NameCell({ row }: { row: PersonRow }) {
  const texts = useMessages(messages)
  return (
    <span className={styles.nameCell!}>
      <Link {...personAddress(row)} className={styles.name!}>
        {cut(nameOf(row) ?? texts.noName)}
      </Link>
      {row.state === 'placeholder' && <Badge>{texts.placeholder}</Badge>}
    </span>
  )
}

/** A cell shows a line. The person's page shows the whole value. */
const maxShown = 200
const cut = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown)}…` : text)

/** Formats values by the types of their fields. A value of another type, which may have been stored before, is shown as it is. */
function useCellFormat(): (field: FilterField | undefined, value: unknown) => ReactNode {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { locale } = useLanguage()
  return useMemo(() => {
    const number = new Intl.NumberFormat(locale, { maximumFractionDigits: 20 })
    const format = (field: FilterField | undefined, value: unknown): string => {
      if (value === null || value === undefined) return ''
      if (typeof value === 'boolean') return value ? texts.yes : texts.no
      if (typeof value === 'number') return number.format(value)
      if (Array.isArray(value))
        return value
          .slice(0, 20)
          .map(element => format(field, element))
          .join(', ')
      if (typeof value !== 'string') return JSON.stringify(value)
      // A date has no time zone, so it must not be read as midnight in London.
      if (field?.type === 'date' && /^\d{4}-\d\d-\d\d$/.test(value)) return formats.date(`${value}T00:00:00`)
      if (field?.type === 'datetime' && !Number.isNaN(Date.parse(value))) return formats.dateTime(value)
      return value
    }
    return (field, value) => cut(format(field, value))
  }, [texts, formats, locale])
}
