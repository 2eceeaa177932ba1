import type { Definitions } from '@kith/client'
import { useMemo } from 'react'
import { evidenceColumns, targetsOf } from '../../../transfer/columns.ts'
import { useMessages } from '../app/language.tsx'
import { attributePrefix } from '../filters/field-types.ts'
import { Section } from '../ui/page.tsx'
import { type Option, Select } from '../ui/select.tsx'
import { attributeFieldOf, type CsvStart, type Mapping } from './file-reader.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

/** A row for each column of the file: its name, its first values, and the field that it becomes. */
export function MappingTable({
  start,
  mapping,
  owner,
  definitions,
  onChange,
}: {
  start: CsvStart
  mapping: Mapping
  owner: string
  definitions: Definitions
  onChange: (mapping: Mapping) => void
}) {
  const texts = useMessages(messages)
  const fields = useMemo(() => fieldOptions(owner, definitions), [owner, definitions])
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
      <div className={styles.scroll!}>
        <table className={styles.table!}>
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
                  <span className={styles.value!}>{name || '—'}</span>
                </th>
                <td className={styles.fieldCell!}>
                  <Select
                    aria-label={`${texts.becomes}: ${name}`}
                    placeholder={texts.choose}
                    options={optionsOf(name)}
                    value={mapping[index] ?? null}
                    onChange={field => onChange(mapping.map((before, other) => (other === index ? field : before)))}
                  />
                </td>
                <td>
                  <span className={`${styles.value} ${styles.muted}`}>
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

/** All fields, each once. An answer to a consent has the name of its purpose beside it. */
function fieldOptions(owner: string, { attributes, consent_types }: Definitions): Option<string>[] {
  const bare = new Set(attributes.filter(each => each.owner === owner).map(({ key }) => key))
  const names = [...targetsOf(owner, { stacks: [], attributes, consent_types }).entries()]
  const suffixes = evidenceColumns.map(([key]) => key)
  return names
    .filter(([name, target]) => !(target.to === 'attribute' && bare.has(name)))
    .map(([name]) => {
      const [, id, channel, suffix] = /^consents\.(\d+)\.(\w+)(?:\.(\w+))?$/.exec(name) ?? []
      const type = consent_types.find(each => String(each.id) === id)
      if (!type) return { value: name, label: name }
      const label = [`${type.name} · ${channel}`, ...(suffix && suffixes.includes(suffix) ? [suffix] : [])].join(' · ')
      return { value: name, label, help: name }
    })
}
