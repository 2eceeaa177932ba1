import { getRouteApi } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { useMessages } from '../app/language.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { Loading, Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { AttributesTab } from './attributes-tab.tsx'
import { ConsentTypesTab } from './consent-types-tab.tsx'
import { messages } from './messages.ts'
import { ObservedTab } from './observed-tab.tsx'
import type { SchemaTab } from './search.ts'
import { SettingsTab } from './settings-tab.tsx'

const Picture = lazy(async () => ({ default: (await import('./picture.tsx')).Picture }))
const route = getRouteApi('/shell/schema')

/** The definitions of the organization: what is stored, under which rules, and for which purposes people are asked. */
export function SchemaPage() {
  const texts = useMessages(messages)
  const { tab = 'attributes' } = route.useSearch()
  const navigate = route.useNavigate()
  const { definitions } = useDefinitions()
  return (
    <Page title={texts.schema}>
      <Tabs
        label={texts.schema}
        selected={tab}
        onSelect={id => navigate({ search: before => ({ ...before, tab: id as SchemaTab }) })}
        tabs={[
          { id: 'attributes', label: texts.tabs.attributes, content: <AttributesTab definitions={definitions} /> },
          { id: 'consents', label: texts.tabs.consents, content: <ConsentTypesTab definitions={definitions} /> },
          { id: 'observed', label: texts.tabs.observed, content: <ObservedTab definitions={definitions} /> },
          {
            id: 'picture',
            label: texts.tabs.picture,
            content: (
              <Suspense fallback={<Loading />}>
                <Picture definitions={definitions} />
              </Suspense>
            ),
          },
          { id: 'settings', label: texts.tabs.settings, content: <SettingsTab /> },
        ]}
      />
    </Page>
  )
}
