import { useRouterState } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'
import styles from './page.module.css'

type PageProps = {
  title: string
  /** A line below the title. */
  subtitle?: ReactNode
  /** The buttons beside the title. */
  actions?: ReactNode
  children: ReactNode
}

/** The frame of every page: its title, its actions and its content. */
export function Page({ title, subtitle, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · kith`
  }, [title])
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <div className={styles.titles}>
          <h1 ref={useNavigationFocus()} tabIndex={-1}>
            {title}
          </h1>
          {subtitle && <div className={styles.subtitle}>{subtitle}</div>}
        </div>
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

let [reachedPath, hasNavigated] = [location.pathname, false]

/**
 * Gives the focus to the heading after a navigation, which took it away with the previous page, or began outside the page. The first
 * page of a document begins at its top, where the link to the content is.
 */
function useNavigationFocus() {
  const heading = useRef<HTMLHeadingElement>(null)
  const path = useRouterState({ select: state => state.location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: each path is another page
  useEffect(() => {
    const isOther = location.pathname !== reachedPath
    reachedPath = location.pathname
    hasNavigated ||= isOther
    const focused = document.activeElement
    const isLost = focused === null || focused === document.body
    if (hasNavigated && (isLost || (isOther && focused.closest('nav')))) heading.current?.focus({ preventScroll: true })
  }, [path])
  return heading
}

/** A part of a page with a heading. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.section} aria-label={title}>
      <div className={styles.header}>
        <h2>{title}</h2>
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** What an empty list says: what would be here, and how to begin. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p className={styles.emptyTitle}>{title}</p>
      {children}
    </div>
  )
}

export function Loading() {
  const texts = useMessages(messages)
  return (
    <p className={styles.loading} role="status">
      {texts.loading}…
    </p>
  )
}

/** A short word about a state. */
export function Badge({
  kind = 'neutral',
  children,
}: {
  kind?: 'neutral' | 'positive' | 'negative' | 'caution' | 'accent'
  children: ReactNode
}) {
  return <span className={kind === 'neutral' ? styles.badge : `${styles.badge} ${styles[kind]}`}>{children}</span>
}

/** A list of names and values. A name without a value is left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  const known = facts.filter(([, value]) => value || value === 0)
  return (
    <dl className={styles.facts}>
      {known.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two attributes may have one name
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
