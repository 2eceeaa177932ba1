import { Link } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { EmptyState, Page } from '../ui/page.tsx'
import { messages } from './messages.ts'

/** The page in place of a record that does not exist. */
export function MissingRecord({ stackKey, name }: { stackKey: string; name: string }) {
  const texts = useMessages(messages)
  return (
    <Page title={name}>
      <EmptyState title={texts.noSuchRecord}>
        <Link to="/records/$stackKey" params={{ stackKey }}>
          {texts.showAllRecords}
        </Link>
      </EmptyState>
    </Page>
  )
}
