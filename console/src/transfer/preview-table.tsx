import type { Definitions } from '@kith/client'
import { useMemo } from 'react'
import type { ImportItem } from '../../../transfer/item.ts'
import { useMessages } from '../app/language.tsx'
import { isInternational, prefixOf } from '../entity/countries.ts'
import { EmptyState, Section } from '../ui/page.tsx'
import { useFieldNames } from './field-names.ts'
import {
  type CsvStart,
  columnsOfMapping,
  type FoundOptions,
  type Mapping,
  fieldName as nameOfField,
  previewOf,
} from './file-reader.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'
import { useRefusalTexts } from './use-refusal-texts.ts'

/** A longer text is clipped on the page. What is imported is the whole. */
const maxShownCharacters = 200
const clipped = (text: string) => (text.length > maxShownCharacters ? `${text.slice(0, maxShownCharacters)}…` : text)

type PreviewTableProps = {
  start: CsvStart
  mapping: Mapping
  owner: string
  definitions: Definitions
  options: FoundOptions
  phoneCountry: string | null
}

/** The first records as the import would send them, with what is wrong with each cell. */
export function PreviewTable({ start, mapping, owner, definitions, options, phoneCountry }: PreviewTableProps) {
  const texts = useMessages(messages)
  const fieldName = useFieldNames(owner, definitions)
  const { faultText } = useRefusalTexts()
  const prefixIndex = mapping.findIndex(field => field && nameOfField(field, owner, definitions) === 'mobile_prefix')
  /** A number without a prefix has that of the country that was chosen. */
  const located = (text: string, index: number, cells: readonly { text: string }[]) => {
    const isNumber = mapping[index] && nameOfField(mapping[index], owner, definitions) === 'mobile_number'
    const isPlain = text !== '' && !isInternational(text) && !cells[prefixIndex]?.text
    return phoneCountry !== null && isNumber && isPlain ? `${prefixOf(phoneCountry)} ${text}` : text
  }
  const rows = useMemo(
    () => previewOf(start, columnsOfMapping(start.names, mapping, owner, definitions), options),
    [start, mapping, owner, definitions, options],
  )
  return (
    <Section title={texts.preview(rows.length)}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the table too */}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields, not cells */}
      <div className={styles.scroll} role="group" tabIndex={0} aria-label={texts.preview(rows.length)}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{texts.line}</th>
              {start.names.map((name, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a column has no other identity than its place
                <th key={index} scope="col">
                  <span className={styles.value}>{name || '—'}</span>
                  <span className={`${styles.value} muted`}>
                    {mapping[index] ? fieldName(mapping[index]) : texts.ignored}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ line, cells, error }) => (
              <tr key={line}>
                <th scope="row">
                  {line}
                  {error && <span className={styles.cellError}>{faultText(error)}</span>}
                </th>
                {cells.map(({ text, value, error }, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a cell has no other identity than its place
                  <td key={index} className={mapping[index] ? undefined : 'muted'}>
                    <span className={styles.value}>{clipped(located(shownValue(text, value), index, cells))}</span>
                    {error && <span className={styles.cellError}>{clipped(faultText(error))}</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}

/** The value that a cell becomes, if it is not the same as its text. */
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
