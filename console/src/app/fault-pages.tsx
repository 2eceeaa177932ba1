import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { Button, LinkButton } from '../ui/button.tsx'
import { EmptyState, Notice, Page, Problem } from '../ui/page.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'
import { UnreadableFilterError } from './search-params.ts'

/** The page for an address that the console does not have. */
export function NotFoundPage() {
  const texts = useMessages(messages)
  return (
    <Page title={texts.notFound}>
      <EmptyState title={texts.notFoundAdvice}>
        <LinkButton to="/people">{texts.people}</LinkButton>
      </EmptyState>
    </Page>
  )
}

/** Matches the messages of browsers and Vite for code or styles that could not be loaded. These errors have no code. */
const missingCode = /imported module|importing a module|preload/i

/** The page that replaces a failed page. */
export function PageFault({ error }: ErrorComponentProps) {
  const texts = useMessages(messages)
  const reload = () => location.reload()
  const router = useRouter()
  if (error instanceof Error && error.cause instanceof UnreadableFilterError)
    return (
      <Page title={texts.unreadableFilter}>
        <Notice kind="error" title={texts.unreadableFilterAdvice}>
          <LinkButton to="." search={before => ({ ...before, filter: undefined }) as never}>
            {texts.withoutFilter}
          </LinkButton>
        </Notice>
      </Page>
    )
  return (
    <Page title={texts.fault}>
      {error instanceof Error && missingCode.test(error.message) ? (
        <Notice kind="error" title={texts.missingCode}>
          <Button onPress={reload}>{texts.reload}</Button>
        </Notice>
      ) : (
        <Problem error={error} onRetry={() => router.invalidate()} />
      )}
    </Page>
  )
}
