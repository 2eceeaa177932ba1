import type { ReactNode } from 'react'
import styles from './table.module.css'

/** The class of a cell with a number. */
export const numberCell = styles.number!

type TableProps = {
  label: string
  /** The headers of the columns, if all are plain texts. The children are then the rows, and otherwise the parts of a table. */
  headers?: readonly string[]
  children: ReactNode
}

/** A table of few rows. It scrolls sideways where the window is narrow. */
export function Table({ label, headers, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields, not cells
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the table too
    <div className={styles.scroll!} role="group" aria-label={label} tabIndex={0}>
      <table className={styles.table!}>
        {headers ? (
          <>
            <thead>
              <tr>
                {headers.map(header => (
                  <th key={header} scope="col">
                    {header}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>{children}</tbody>
          </>
        ) : (
          children
        )}
      </table>
    </div>
  )
}
