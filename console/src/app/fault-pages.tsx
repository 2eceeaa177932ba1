import type { ErrorComponentProps } from '@tanstack/react-router'
import { LinkButton } from '../ui/link-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState, Page } from '../ui/page.tsx'
import { useMessages } from './language.tsx'
import { messages } from './messages.ts'

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

/** The page in place of one that failed. Its code may be missing after an update of the service, so it offers a reload. */
export function PageFault({ error }: ErrorComponentProps) {
  const texts = useMessages(messages)
  return (
    <Page title={texts.fault}>
      <Problem error={error} onRetry={() => location.reload()} />
    </Page>
  )
}
