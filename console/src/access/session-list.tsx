import { useQuery } from '@tanstack/react-query'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { useWrite } from '../app/write.ts'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Badge, Loading, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import styles from './access.module.css'
import { messages } from './messages.ts'
import { sessionsQuery } from './queries.ts'
import { ScopeList } from './scope-choice.tsx'

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
      <p className={styles.muted}>{texts.sessionsAdvice}</p>
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
