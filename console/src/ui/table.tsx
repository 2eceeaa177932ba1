import type { ReactNode } from 'react'
import styles from './table.module.css'

/** The class of a cell with a number. */
export const numberCell = styles.number!

/** A table of few rows. It scrolls sideways where the window is narrow. */
export function Table({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields, not cells
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the table too
    <div className={styles.scroll!} role="group" aria-label={label} tabIndex={0}>
      <table className={styles.table!}>{children}</table>
    </div>
  )
}
