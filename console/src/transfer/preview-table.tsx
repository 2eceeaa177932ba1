import type { ImportItem } from '../../../transfer/item.ts'
import { useMessages } from '../app/language.tsx'
import { isInternational, prefixOf } from '../entity/countries.ts'
import { EmptyState, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { useFieldNames } from './field-names.ts'
import { type CsvStart, fieldName, type Mapping, previewOf, type Reading, type Targets } from './file-reader.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

/** A longer text is clipped on the page. The import sends the whole text. */
const maxShownCharacters = 200
const clipped = (text: string) => (text.length > maxShownCharacters ? `${text.slice(0, maxShownCharacters)}…` : text)

type PreviewTableProps = {
  start: CsvStart
  mapping: Mapping
  targets: Targets
  reading: Reading
  phoneCountry: string | null
}

/** The first records as the import would send them, with the faults of each cell. */
export function PreviewTable({ start, mapping, targets, reading, phoneCountry }: PreviewTableProps) {
  const texts = useMessages(messages)
  const nameOf = useFieldNames(targets)
  const { faultText } = useRefusalTexts()
  const fields = mapping.map(field => field && fieldName(field, targets))
  /** A number without a prefix gets the prefix of the chosen country. */
  const located = (text: string, index: number, cells: readonly { text: string }[]) => {
    const isPlain = text !== '' && !isInternational(text) && !cells[fields.indexOf('mobile_prefix')]?.text
    const isLocated = phoneCountry !== null && fields[index] === 'mobile_number' && isPlain
    return isLocated ? `${prefixOf(phoneCountry)} ${text}` : text
  }
  const rows = previewOf(start, reading)
  const headers = start.names.map((name, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a column has no other identity than its place
    <div key={index} className={styles.value}>
      {name || '—'}
      <div className="muted">{mapping[index] ? nameOf(mapping[index]) : texts.ignored}</div>
    </div>
  ))
  return (
    <Section title={texts.preview(rows.length)}>
      <Table label={texts.preview(rows.length)} headers={[texts.line, ...headers]}>
        {rows.map(({ line, cells, error }) => (
          <tr key={line}>
            <th scope="row">
              {line}
              {error && <span className={styles.cellError}>{faultText(error)}</span>}
            </th>
            {cells.map(({ text, value, error }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a cell has no other identity than its place
              <td key={index} className={mapping[index] ? undefined : 'muted'}>
                <div className={styles.value}>{clipped(located(shownValue(text, value), index, cells))}</div>
                {error && <span className={styles.cellError}>{clipped(faultText(error))}</span>}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </Section>
  )
}

/** The value of a cell, if it differs from its text. */
function shownValue(text: string, value: unknown): string {
  if (value === undefined) return text
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function NdjsonPreview({ items }: { items: ImportItem[] }) {
  const texts = useMessages(messages)
  const { faultText } = useRefusalTexts()
  if (items.length === 0) return <EmptyState title={texts.emptyFile} />
  return (
    <Section title={texts.preview(items.length)}>
      <ol className={styles.lines}>
        {items.map(({ line, original, refusal }) => (
          <li key={line}>
            <code className={styles.value}>{clipped(new TextDecoder().decode(original as Uint8Array))}</code>
            {refusal && <span className={styles.cellError}>{faultText(refusal.message)}</span>}
          </li>
        ))}
      </ol>
    </Section>
  )
}
