import type { ConsoleSession } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { client, useWrite } from '../app/client.ts'
import { isUnlimited } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Badge, Loading, Page, Problem, Section } from '../ui/page.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { Tabs } from '../ui/tabs.tsx'
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
  const navigate = useNavigate()
  const { tab } = useSearch({ strict: false }) as AccessSearch
  const mayWrite = useScope('access:write')
  const tabs = [
    ...(isUnlimited() ? [{ id: 'accounts', label: texts.accounts, content: <AccountList /> }] : []),
    { id: 'clients', label: texts.clients, content: <ClientList /> },
    {
      id: 'tokens',
      label: texts.tokens,
      content: (
        <div className="column gap-5">
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
    <Page title={texts.access} subtitle={texts.subtitle}>
      <Tabs
        label={texts.access}
        tabs={tabs}
        selected={(tabs.find(({ id }) => id === tab) ?? tabs[0]!).id}
        onSelect={id => navigate({ to: '/access', search: { tab: id as NonNullable<AccessSearch['tab']> } })}
      />
    </Page>
  )
}

const kinds = { signs: 'positive', verifies: 'neutral', expired: 'caution' } as const

/** The public part of the keys that sign tokens. */
function KeyList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const keys = useQuery(keysQuery)
  if (keys.isPending) return <Loading />
  if (!keys.data) return <Problem error={keys.error} onRetry={() => keys.refetch()} />
  return (
    <Section title={texts.keys}>
      <p className="muted">{texts.keysAdvice}</p>
      <ColumnTable
        label={texts.keys}
        rows={keys.data}
        rowKey={({ kid }) => kid}
        columns={[
          [texts.keyId, ({ kid }) => <code>{kid}</code>],
          [texts.algorithm, ({ algorithm }) => algorithm],
          [texts.created, ({ created_at }) => formats.dateTime(created_at)],
          [texts.state, ({ state }) => <Badge kind={kinds[state]}>{texts.keyStates[state]}</Badge>],
          [texts.verifiesUntil, ({ verifies_until }) => (verifies_until ? formats.dateTime(verifies_until) : '—')],
        ]}
      />
    </Section>
  )
}

/** The sessions of the console. The current session is marked. */
function SessionList() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const own = useSession()
  const mayWrite = useScope('access:write')
  const sessions = useQuery({ ...sessionsQuery, refetchInterval: 10_000 })
  const end = useWrite((id: string) => client.sessions.revoke(id), { refresh: [sessionsQuery.queryKey] })
  const stateOf = ({ id, name }: ConsoleSession) => {
    if (id === own.id) return <Badge kind="accent">{texts.thisSession}</Badge>
    if (!mayWrite) return <Badge kind="positive">{texts.works}</Badge>
    return (
      <Button look="danger" aria-label={texts.endSession(name)} onPress={() => end.mutate(id)}>
        {texts.end}
      </Button>
    )
  }
  if (sessions.isPending) return <Loading />
  if (!sessions.data) return <Problem error={sessions.error} onRetry={() => sessions.refetch()} />
  return (
    <Section title={texts.sessions}>
      <p className="muted">{texts.sessionsAdvice}</p>
      {end.error && <Problem error={end.error} />}
      <ColumnTable
        label={texts.sessions}
        rows={sessions.data}
        rowKey={({ id }) => id}
        columns={[
          [texts.name, ({ name }) => name, 'name'],
          [texts.method, ({ method }) => texts.methods[method]],
          [texts.scopes, ({ scopes }) => <ScopeList scopes={scopes} />],
          [texts.created, ({ created_at }) => formats.dateTime(created_at)],
          [texts.expires, ({ expires_at }) => formats.dateTime(expires_at)],
          [texts.state, stateOf],
        ]}
      />
    </Section>
  )
}
