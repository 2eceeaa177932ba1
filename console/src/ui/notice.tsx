import { KithConnectionError, KithError, KithTimeoutError } from '@kith/client'
import type { ReactNode } from 'react'
import { useMessages } from '../app/language.tsx'
import { SessionError } from '../app/session.tsx'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button, LinkButton } from './button.tsx'
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
  const service = useServiceTexts()
  const { title, advice } = explain(error, texts, service)
  const status = statusOf(error)
  // The same request is refused again, until another session has the permission.
  const canRetry = onRetry !== undefined && status !== 403
  const details = error instanceof KithError ? (error.details ?? []) : []
  return (
    <Notice kind="error" title={title}>
      {advice && <p>{advice}</p>}
      {details.length > 0 && (
        <ul className={styles.details}>
          {details.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              {path && <code>{path}</code>} {service.translated(message) ?? message}
            </li>
          ))}
        </ul>
      )}
      {(canRetry || status === 401) && (
        <div className={styles.actions}>
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
  // A sentence that only the service says stands below what its code means.
  const code = error instanceof KithError || error instanceof SessionError ? error.code : undefined
  const meaning = service.meaningOf(code)
  return meaning === undefined ? { title: message } : { title: meaning, advice: message }
}
