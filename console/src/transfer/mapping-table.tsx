import type { Definitions } from '@kith/client'
import { targetsOf } from '../../../transfer/columns.ts'
import { useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import { Section } from '../ui/page.tsx'
import { type Option, Select } from '../ui/select.tsx'
import { useFieldNames } from './field-names.ts'
import { attributeFieldOf, type CsvStart, type Mapping } from './file-reader.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

type MappingTableProps = {
  start: CsvStart
  mapping: Mapping
  owner: string
  definitions: Definitions
  onChange: (mapping: Mapping) => void
}

/** A row for each column of the file: its name, its first values, and the field that it becomes. */
export function MappingTable({ start, mapping, owner, definitions, onChange }: MappingTableProps) {
  const texts = useMessages(messages)
  const nameOf = useFieldNames(owner, definitions)
  const fields = fieldOptions(owner, definitions, nameOf)
  const optionsOf = (name: string): Option<string>[] => {
    const key = attributeFieldOf(name)
    const isKnown = key === attributePrefix || fields.some(({ value }) => value === name || value === key)
    return [
      { value: '', label: texts.ignored },
      ...(isKnown ? [] : [{ value: key, label: texts.newAttribute(key.slice(attributePrefix.length)) }]),
      ...fields,
    ]
  }
  return (
    <Section title={texts.columns}>
      <div className={styles.scroll}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{texts.column}</th>
              <th scope="col">{texts.becomes}</th>
              <th scope="col">{texts.firstValues}</th>
            </tr>
          </thead>
          <tbody>
            {start.names.map((name, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a column has no other identity than its place
              <tr key={index}>
                <th scope="row">
                  <span className={styles.value}>{name || '—'}</span>
                </th>
                <td className={styles.fieldCell}>
                  <Select
                    aria-label={`${texts.becomes}: ${name}`}
                    placeholder={texts.choose}
                    options={optionsOf(name)}
                    value={mapping[index] ?? null}
                    onChange={field => onChange(mapping.map((before, other) => (other === index ? field : before)))}
                  />
                </td>
                <td>
                  <span className={`${styles.value} muted`}>
                    {start.records
                      .map(({ cells }) => cells[index] ?? '')
                      .filter(cell => cell.trim() !== '')
                      .slice(0, 3)
                      .map(cell => cell.slice(0, 100))
                      .join(' · ')}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}

/** All fields, each once and by its name for people. */
function fieldOptions(owner: string, definitions: Definitions, nameOf: (field: string) => string): Option<string>[] {
  const fields = new Set(
    [...targetsOf(owner, definitions).values()].flatMap(target => ('name' in target ? [target.name] : [])),
  )
  return [...fields].map(value => {
    const label = nameOf(value)
    return { value, label, ...(label !== value && { help: value }) }
  })
}
