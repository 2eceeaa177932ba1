import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import styles from './access.module.css'
import { AccountList } from './account-list.tsx'
import { messages as accountMessages } from './account-messages.ts'
import { ClientList } from './client-list.tsx'
import { KeyList } from './key-list.tsx'
import { messages } from './messages.ts'
import { RoleList } from './role-list.tsx'
import type { AccessSearch } from './search.ts'
import { SessionList } from './session-list.tsx'
import { TokenForm } from './token-form.tsx'
import { TokenList } from './token-list.tsx'

/** The page of accounts, clients, tokens, roles, sessions and keys. */
export function AccessPage() {
  const texts = useMessages(messages)
  const { accounts } = useMessages(accountMessages)
  const navigate = useNavigate()
  const { tab = 'accounts' } = useSearch({ strict: false }) as AccessSearch
  const mayWrite = useScope('access:write')
  const tabs = [
    { id: 'accounts', label: accounts, content: <AccountList /> },
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
        selected={tabs.some(({ id }) => id === tab) ? tab : 'accounts'}
        onSelect={id => navigate({ to: '/access', search: { tab: id as NonNullable<AccessSearch['tab']> } })}
      />
    </Page>
  )
}
