import { type Detail, KithConnectionError, KithError, KithTimeoutError } from '@kith/client'
import { useRouterState } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { useMessages } from '../app/language.tsx'
import { SessionError } from '../app/session.tsx'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button, LinkButton } from './button.tsx'
import { messages } from './messages.ts'
import noticeStyles from './notice.module.css'
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
  useTitle(title)
  return (
    <div className={styles.page}>
      <header className="row centered apart gap-3">
        <div className={styles.titles}>
          <h1 ref={useNavigationFocus()} tabIndex={-1}>
            {title}
          </h1>
          {subtitle && <div className="muted">{subtitle}</div>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** Sets the title of the browser's tab. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · kith`
  }, [title])
}

let [reachedPath, hasNavigated] = [location.pathname, false]

/**
 * Focuses the heading after a navigation that removed the focused element, or that began outside the page. The first
 * page of a document starts at its top, with the link to the content.
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
    <section className="column" aria-label={title}>
      <div className="row centered apart gap-3">
        <h2>{title}</h2>
        {actions && <div className="row">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** The text in place of an empty list: what the list would show, and how to begin. */
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

type BadgeProps = {
  kind?: 'neutral' | 'positive' | 'negative' | 'caution' | 'accent'
  children: ReactNode
}

/** A short word about a state. */
export function Badge({ kind = 'neutral', children }: BadgeProps) {
  return <span className={kind === 'neutral' ? styles.badge : `${styles.badge} ${styles[kind]}`}>{children}</span>
}

/** A list of names and values. A name without a value is omitted. */
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

type NoticeProps = {
  kind?: 'info' | 'success' | 'caution' | 'error'
  title?: string
  children?: ReactNode
}

/** A message in the flow of the page. An `error` is read out at once. */
export function Notice({ kind = 'info', title, children }: NoticeProps) {
  return (
    <div className={`${noticeStyles.notice} ${noticeStyles[kind]}`} role={kind === 'error' ? 'alert' : 'status'}>
      {title && <strong>{title}</strong>}
      {children}
    </div>
  )
}

/** Shows an error: its cause, its effect on the input, and advice. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const texts = useMessages(messages)
  const service = useServiceTexts()
  const { title, advice } = explain(error, texts, service)
  const status = statusOf(error)
  // The service refuses the same request again, until another session has the permission.
  const canRetry = onRetry !== undefined && status !== 403
  const details = error instanceof KithError ? (error.details ?? []) : []
  return (
    <Notice kind="error" title={title}>
      {advice && <p>{advice}</p>}
      {details.length > 0 && <Details details={details} />}
      {(canRetry || status === 401) && (
        <div className="row">
          {status === 401 && <SignInLink />}
          {canRetry && <Button onPress={onRetry}>{texts.tryAgain}</Button>}
        </div>
      )}
    </Notice>
  )
}

/** The messages of the service about parts of a request, translated if possible. */
export function Details({ details }: { details: readonly Detail[] }) {
  const { said } = useServiceTexts()
  return (
    <ul className={noticeStyles.details}>
      {details.map(({ path, message }) => (
        <li key={`${path} ${message}`}>
          {path && <code>{path}</code>} {said(message)}
        </li>
      ))}
    </ul>
  )
}

/**
 * The link to the sign-in, which leads back to this page. The sign-in loads a new document, which holds no data of the
 * old session.
 */
function SignInLink() {
  const texts = useMessages(messages)
  const next = location.pathname.replace(/^\/console/, '') + location.search
  return (
    <LinkButton to="/sign-in" search={{ next }} reloadDocument look="primary">
      {texts.signIn}
    </LinkButton>
  )
}

const statusOf = (error: unknown): number | undefined =>
  error instanceof KithError || error instanceof SessionError ? error.status : undefined

type Explanation = { title: string; advice?: string | undefined }

type ServiceTexts = ReturnType<typeof useServiceTexts>

function explain(error: unknown, texts: (typeof messages)['en'], service: ServiceTexts): Explanation {
  if (error instanceof KithConnectionError) return { title: texts.unreachable, advice: texts.unreachableAdvice }
  if (error instanceof KithTimeoutError) return { title: texts.tooSlow, advice: texts.unreachableAdvice }
  const status = statusOf(error)
  if (status === 401) return { title: texts.signedOut, advice: texts.signedOutAdvice }
  if (status === 412) return { title: texts.changedMeanwhile }
  const message = error instanceof KithError ? error.sentence : error instanceof Error ? error.message : String(error)
  const known = service.translated(message)
  if (status === 429 || status === 503)
    return { title: texts.overloaded, advice: `${texts.overloadedAdvice} ${known ?? message}` }
  if (status === 403) return { title: texts.forbidden, advice: `${texts.forbiddenAdvice} ${known ?? message}` }
  if (known !== undefined) return { title: known }
  // A sentence without a translation is shown below the meaning of its code.
  const code = error instanceof KithError || error instanceof SessionError ? error.code : undefined
  const meaning = service.meaningOf(code)
  return meaning === undefined ? { title: message } : { title: meaning, advice: message }
}
