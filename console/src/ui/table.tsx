import type { ReactNode } from 'react'
import styles from './table.module.css'

/** The class of a cell with a number. */
export const numberCell = styles.number

type TableProps = {
  label: string
  /**
   * Whether each row becomes a card in a narrow window, with the `data-label` of its cells. The headers must then be
   * texts.
   */
  hasCards?: boolean | undefined
  /** The headers of the columns. {@link numberHeader} wraps headers of number columns. */
  headers: readonly (ReactNode | NumberHeader)[]
  /** The rows. */
  children: ReactNode
}

type NumberHeader = { numbers: ReactNode }

/** The header of a column of numbers. */
export const numberHeader = (numbers: ReactNode): NumberHeader => ({ numbers })

/**
 * A column: its header, the content of a row's cell, and whether its cells are numbers, name their rows, or have their
 * buttons.
 */
export type TableColumn<Row> = readonly [
  header: ReactNode,
  cell: (row: Row) => ReactNode,
  kind?: 'number' | 'name' | 'action' | false,
]

type ColumnTableProps<Row> = Pick<TableProps, 'label' | 'hasCards'> & {
  rows: readonly Row[]
  rowKey(row: Row, index: number): string | number
  /** The columns. A column that the session may not see is `false`. */
  columns: readonly (TableColumn<Row> | false)[]
}

/** A table whose rows all have the same columns. */
export function ColumnTable<Row>({ label, hasCards, rows, rowKey, columns }: ColumnTableProps<Row>) {
  const shown = columns.filter(column => column !== false)
  const headers = shown.map(([header, , kind]) => (kind === 'number' ? numberHeader(header) : header))
  return (
    <Table label={label} hasCards={hasCards} headers={headers}>
      {rows.map((row, index) => (
        <tr key={rowKey(row, index)}>
          {shown.map(([header, cell, kind], column) => {
            const Cell = kind === 'name' ? 'th' : 'td'
            return (
              <Cell
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table are fixed
                key={column}
                scope={kind === 'name' ? 'row' : undefined}
                className={kind === 'number' ? numberCell : undefined}
                data-label={hasCards && kind !== 'name' && kind !== 'action' ? header : undefined}
              >
                {cell(row)}
              </Cell>
            )
          })}
        </tr>
      ))}
    </Table>
  )
}

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
