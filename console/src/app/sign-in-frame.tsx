import type { ReactNode } from 'react'
import styles from './sign-in-page.module.css'

/** The frame of a page before the sign-in. */
export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className={styles.main}>
      <div className={styles.card}>
        <h1 className={styles.title}>
          <img src="/console/icon.svg" alt="" width="32" height="32" /> {title}
        </h1>
        {children}
      </div>
    </main>
  )
}
