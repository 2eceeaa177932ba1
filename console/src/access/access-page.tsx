import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Badge, Loading, Page, Problem, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { Tabs } from '../ui/tabs.tsx'
import styles from './access.module.css'
import { messages as accountMessages } from './account-messages.ts'
import { AccountList } from './accounts.tsx'
import { ClientList } from './client-list.tsx'
import { messages } from './messages.ts'
import { keysQuery, sessionsQuery } from './queries.ts'
import { RoleList } from './roles.tsx'
import { ScopeList } from './scope-choice.tsx'
import type { AccessSearch } from './search.ts'
import { TokenForm, TokenList } from './tokens.tsx'

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

const kinds = { signs: 'positive', verifies: 'neutral', expired: 'caution' } as const

/** The public part of the keys that sign tokens. */
export function KeyList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const keys = useQuery(keysQuery)
  if (keys.isPending) return <Loading />
  if (!keys.data) return <Problem error={keys.error} onRetry={() => keys.refetch()} />
  return (
    <Section title={texts.keys}>
      <p className="muted">{texts.keysAdvice}</p>
      <Table
        label={texts.keys}
        headers={[texts.keyId, texts.algorithm, texts.created, texts.state, texts.verifiesUntil]}
      >
        {keys.data.map(({ kid, algorithm, created_at, state, verifies_until }) => (
          <tr key={kid}>
            <td>
              <code>{kid}</code>
            </td>
            <td>{algorithm}</td>
            <td>{formats.dateTime(created_at)}</td>
            <td>
              <Badge kind={kinds[state]}>{texts.keyStates[state]}</Badge>
            </td>
            <td>{verifies_until ? formats.dateTime(verifies_until) : '—'}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

/** The sessions of the console. The own one is marked. */
export function SessionList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const own = useSession()
  const mayWrite = useScope('access:write')
  const sessions = useQuery({ ...sessionsQuery, refetchInterval: 10_000 })
  const end = useWrite((id: string) => client.sessions.revoke(id), { refresh: [sessionsQuery.queryKey] })
  if (sessions.isPending) return <Loading />
  if (!sessions.data) return <Problem error={sessions.error} onRetry={() => sessions.refetch()} />
  return (
    <Section title={texts.sessions}>
      <p className="muted">{texts.sessionsAdvice}</p>
      {end.error && <Problem error={end.error} />}
      <Table
        label={texts.sessions}
        headers={[texts.name, texts.method, texts.scopes, texts.created, texts.expires, texts.state]}
      >
        {sessions.data.map(session => (
          <tr key={session.id}>
            <th scope="row">{session.name}</th>
            <td>{texts.methods[session.method]}</td>
            <td>
              <ScopeList scopes={session.scopes} />
            </td>
            <td>{formats.dateTime(session.created_at)}</td>
            <td>{formats.dateTime(session.expires_at)}</td>
            <td>
              {session.id === own.id ? (
                <Badge kind="accent">{texts.thisSession}</Badge>
              ) : mayWrite ? (
                <Button
                  look="danger"
                  aria-label={texts.endSession(session.name)}
                  onPress={() => end.mutate(session.id)}
                >
                  {texts.end}
                </Button>
              ) : (
                <Badge kind="positive">{texts.works}</Badge>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}
