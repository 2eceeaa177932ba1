import type { ReactNode } from 'react'
import styles from './table.module.css'

/** The class of a cell with a number. */
export const numberCell = styles.number

type TableProps = {
  label: string
  /** In a narrow window, each row is a card, with the `data-label` of its cells. */
  hasCards?: boolean
  /** The headers of the columns. Those of columns of numbers are wrapped in {@link numberHeader}. */
  headers: readonly (ReactNode | NumberHeader)[]
  /** The rows. */
  children: ReactNode
}

type NumberHeader = { numbers: string }

/** The header of a column of numbers. */
export const numberHeader = (numbers: string): NumberHeader => ({ numbers })

const isNumberHeader = (header: ReactNode | NumberHeader): header is NumberHeader =>
  typeof header === 'object' && header !== null && 'numbers' in header

/** A table of few rows. It scrolls sideways where the window is narrow, unless its rows become cards. */
export function Table({ label, hasCards = false, headers, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields, not cells
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the table too
    <div className={styles.scroll} role="group" aria-label={label} tabIndex={0}>
      <table className={hasCards ? `${styles.table} ${styles.cards}` : styles.table} aria-label={label}>
        <thead>
          <tr>
            {headers.map((header, index) => (
              <th
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table are fixed
                key={index}
                scope="col"
                className={isNumberHeader(header) ? numberCell : undefined}
              >
                {isNumberHeader(header) ? header.numbers : header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
