import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { messages } from './messages.ts'
import type { DeliverabilitySearch } from './search.ts'
import { SourceList } from './source-list.tsx'
import { SuppressionList } from './suppression-list.tsx'

/** The page of the suppressed addresses, and of the mail providers that send events of addresses. */
export function DeliverabilityPage() {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const search = useSearch({ strict: false }) as DeliverabilitySearch
  const [mayReadPeople, mayReadSources] = [useScope('people:read'), useScope('webhooks:read')]
  const change = (changed: DeliverabilitySearch) => navigate({ to: '/deliverability', search: changed, replace: true })
  const suppressions = {
    id: 'suppressions',
    label: texts.suppressions,
    content: <SuppressionList search={search} onChange={change} />,
  }
  const sources = { id: 'sources', label: texts.sources, content: <SourceList /> }
  // If a session may read neither, the list says so.
  const tabs = [...(mayReadPeople || !mayReadSources ? [suppressions] : []), ...(mayReadSources ? [sources] : [])]
  return (
    <Page title={texts.deliverability} subtitle={texts.subtitle}>
      <Tabs
        label={texts.deliverability}
        tabs={tabs}
        selected={tabs.find(({ id }) => id === search.tab)?.id ?? tabs[0]!.id}
        onSelect={id => navigate({ to: '/deliverability', search: id === 'sources' ? { tab: id } : {} })}
      />
    </Page>
  )
}
