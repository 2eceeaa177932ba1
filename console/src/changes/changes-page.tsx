import { useMessages } from '../app/language.tsx'
import { messages } from '../app/messages.ts'
import { Page } from '../ui/page.tsx'

export function ChangesPage() {
  const texts = useMessages(messages)
  return <Page title={texts.changes}>…</Page>
}
