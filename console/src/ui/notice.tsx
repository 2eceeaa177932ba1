import { KithConnectionError, KithError, KithTimeoutError } from '@kith/client'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { SessionError } from '../app/session.tsx'
import { Button } from './button.tsx'
import { LinkButton } from './link-button.tsx'
import { messages } from './messages.ts'
import styles from './notice.module.css'

/** A message in the flow of the page. An `error` is read out at once. */
export function Notice({
  kind = 'info',
  title,
  children,
}: {
  kind?: 'info' | 'success' | 'caution' | 'error'
  title?: string
  children?: ReactNode
}) {
  return (
    <div className={`${styles.notice} ${styles[kind]}`} role={kind === 'error' ? 'alert' : 'status'}>
      {title && <strong>{title}</strong>}
      {children}
    </div>
  )
}

/** What went wrong, what it means for the person's input, and what to do. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const texts = useMessages(messages)
  const { title, advice } = explain(error, texts)
  const status = statusOf(error)
  // The same request is refused again, until another session has the permission.
  const canRetry = onRetry !== undefined && status !== 403
  const details = error instanceof KithError ? (error.details ?? []) : []
  return (
    <Notice kind="error" title={title}>
      {advice && <p>{advice}</p>}
      {details.length > 0 && (
        <ul className={styles.details!}>
          {details.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              {path && <code>{path}</code>} {message}
            </li>
          ))}
        </ul>
      )}
      {(canRetry || status === 401) && (
        <div className={styles.actions!}>
          {status === 401 && <SignInLink />}
          {canRetry && <Button onPress={onRetry}>{texts.tryAgain}</Button>}
        </div>
      )}
    </Notice>
  )
}

/** The link to the sign-in, which leads back to this page. The sign-in is a new document, which holds nothing of the old session. */
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

function explain(error: unknown, texts: (typeof messages)['en']): { title: string; advice?: string } {
  if (error instanceof KithConnectionError) return { title: texts.unreachable, advice: texts.unreachableAdvice }
  if (error instanceof KithTimeoutError) return { title: texts.tooSlow, advice: texts.unreachableAdvice }
  const status = statusOf(error)
  if (status === 401) return { title: texts.signedOut, advice: texts.signedOutAdvice }
  if (status === 429 || status === 503)
    return { title: texts.overloaded, advice: `${texts.overloadedAdvice} ${(error as Error).message}` }
  if (status === 403) return { title: texts.forbidden, advice: `${texts.forbiddenAdvice} ${(error as Error).message}` }
  // The details stand below the title, so the title does not repeat the first of them.
  if (error instanceof KithError && error.details.length > 0) return { title: error.sentence }
  return { title: error instanceof Error ? error.message : String(error) }
}
