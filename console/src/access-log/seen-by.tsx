import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading, Section } from '../ui/page.tsx'
import { EntryTable } from './entry-table.tsx'
import { messages } from './messages.ts'
import { accessLogQuery } from './queries.ts'

const shownEntries = 5

/** Who has seen or changed a person lately, for a session that may read the access log. */
export function SeenBy({ id }: { id: string }) {
  const texts = useMessages(messages)
  const mayRead = useScope('access:read')
  const log = useInfiniteQuery({ ...accessLogQuery({ entity: id, kind: 'access' }, shownEntries), enabled: mayRead })
  if (!mayRead) return null
  const entries = log.data?.pages[0]?.items ?? []
  return (
    <Section title={texts.seenBy}>
      {log.isPending && <Loading />}
      {log.error && <Problem error={log.error} onRetry={() => log.refetch()} />}
      {log.data && entries.length === 0 && <p>{texts.neverSeen}</p>}
      {entries.length > 0 && <EntryTable label={texts.seenBy} entries={entries} showsWhom={false} />}
      <p>
        <Link to="/access-log" search={{ entity: id }}>
          {texts.wholeLog}
        </Link>
      </p>
    </Section>
  )
}
