import { useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import { Section } from '../ui/page.tsx'
import { type Option, Select } from '../ui/select.tsx'
import { Table } from '../ui/table.tsx'
import { useFieldNames } from './field-names.ts'
import { attributeFieldOf, type CsvStart, type Mapping, type Targets } from './file-reader.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

type MappingTableProps = {
  start: CsvStart
  mapping: Mapping
  targets: Targets
  onChange: (mapping: Mapping) => void
}

/** A row for each column of the file: its name, its first values, and its field. */
export function MappingTable({ start, mapping, targets, onChange }: MappingTableProps) {
  const texts = useMessages(messages)
  const nameOf = useFieldNames(targets)
  // A field with several names is listed once.
  const names = new Set([...targets.values()].flatMap(target => ('name' in target ? [target.name] : [])))
  const fields = [...names].map((value): Option<string> => {
    const label = nameOf(value)
    return { value, label, ...(label !== value && { help: value }) }
  })
  const optionsOf = (column: string): Option<string>[] => {
    const key = attributeFieldOf(column)
    const isKnown = key === attributePrefix || names.has(column) || names.has(key)
    return [
      { value: '', label: texts.ignored },
      ...(isKnown ? [] : [{ value: key, label: texts.newAttribute(key.slice(attributePrefix.length)) }]),
      ...fields,
    ]
  }
  const firstValues = (column: number) => {
    const cells = start.records.map(({ cells }) => cells[column] ?? '').filter(cell => cell.trim() !== '')
    return cells.slice(0, 3).map(cell => cell.slice(0, 100))
  }
  return (
    <Section title={texts.columns}>
      <Table label={texts.columns} headers={[texts.column, texts.becomes, texts.firstValues]}>
        {start.names.map((name, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a column has no other identity than its place
          <tr key={index}>
            <th scope="row">
              <span className={styles.value}>{name || '—'}</span>
            </th>
            <td>
              <div className={styles.fieldCell}>
                <Select
                  aria-label={`${texts.becomes}: ${name}`}
                  placeholder={texts.chooseField}
                  options={optionsOf(name)}
                  value={mapping[index] ?? null}
                  onChange={field => onChange(mapping.with(index, field))}
                />
              </div>
            </td>
            <td>
              <span className={`${styles.value} muted`}>{firstValues(index).join(' · ')}</span>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}
