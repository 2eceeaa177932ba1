import { getRouteApi } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense } from 'react'
import { isUnlimited } from '../app/field-rights.ts'
import { useMessages } from '../app/language.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { Loading, Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { AttributesTab } from './attributes-tab.tsx'
import { ConsentTypesTab } from './consent-types-tab.tsx'
import { messages } from './messages.ts'
import { ObservedTab } from './observed-tab.tsx'
import { type SchemaTab, schemaTabs } from './search.ts'
import { SettingsTab } from './settings-tab.tsx'

const Picture = lazy(async () => ({ default: (await import('./picture.tsx')).Picture }))
const route = getRouteApi('/shell/schema')

/** The definitions of the organization: stacks, attributes with their rules, and the purposes of consents. */
export function SchemaPage() {
  const texts = useMessages(messages)
  const { tab = 'attributes' } = route.useSearch()
  const navigate = route.useNavigate()
  const { definitions } = useDefinitions()
  const contents: Record<SchemaTab, ReactNode> = {
    attributes: <AttributesTab definitions={definitions} />,
    consents: <ConsentTypesTab definitions={definitions} />,
    observed: <ObservedTab definitions={definitions} />,
    picture: (
      <Suspense fallback={<Loading />}>
        <Picture definitions={definitions} />
      </Suspense>
    ),
    settings: <SettingsTab />,
  }
  const tabs = schemaTabs.filter(id => id !== 'observed' || isUnlimited())
  return (
    <Page title={texts.schema}>
      <Tabs
        label={texts.schema}
        selected={tabs.includes(tab) ? tab : 'attributes'}
        onSelect={id => navigate({ search: before => ({ ...before, tab: id as SchemaTab }) })}
        tabs={tabs.map(id => ({ id, label: texts.tabs[id], content: contents[id] }))}
      />
    </Page>
  )
}
