import type { ReactNode } from 'react'
import styles from './table.module.css'

/** A table of a few rows. It scrolls sideways where the window is narrow. */
export function Table({
  label,
  headers,
  children,
}: {
  label: string
  headers: readonly ReactNode[]
  children: ReactNode
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a region that scrolls
    <section className={styles.frame!} aria-label={label} tabIndex={0}>
      <table className={styles.table!} aria-label={label}>
        <thead>
          <tr>
            {headers.map((header, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table are fixed
              <th key={index} scope="col">
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}
