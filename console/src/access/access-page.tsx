import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import styles from './access.module.css'
import { ClientList } from './client-list.tsx'
import { KeyList } from './key-list.tsx'
import { messages } from './messages.ts'
import { RoleList } from './role-list.tsx'
import type { AccessSearch } from './search.ts'
import { SessionList } from './session-list.tsx'
import { TokenForm } from './token-form.tsx'
import { TokenList } from './token-list.tsx'

/** The page of clients, tokens, sessions and keys. */
export function AccessPage() {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const { tab = 'clients' } = useSearch({ strict: false }) as AccessSearch
  const mayWrite = useScope('access:write')
  const tabs = [
    { id: 'clients', label: texts.clients, content: <ClientList /> },
    {
      id: 'tokens',
      label: texts.tokens,
      content: (
        <div className={styles.sections}>
          <TokenList />
          {mayWrite && <TokenForm />}
        </div>
      ),
    },
    { id: 'roles', label: texts.roles, content: <RoleList /> },
    { id: 'sessions', label: texts.sessions, content: <SessionList /> },
    { id: 'keys', label: texts.keys, content: <KeyList /> },
  ]
  return (
    <Page title={texts.title} subtitle={texts.subtitle}>
      <Tabs
        label={texts.title}
        tabs={tabs}
        selected={tabs.some(({ id }) => id === tab) ? tab : 'clients'}
        onSelect={id => navigate({ to: '/access', search: { tab: id as NonNullable<AccessSearch['tab']> } })}
      />
    </Page>
  )
}
