import type { AccessEntry } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Badge, Loading, Problem, Section } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { accessLogQuery } from './queries.ts'

type EntryTableProps = {
  label: string
  entries: readonly AccessEntry[]
  /** Whether the entries show whom they are about. Those of one person do not. */
  showsWhom?: boolean
}

/** Entries of the access log, newest first. */
export function EntryTable({ label, entries, showsWhom = true }: EntryTableProps) {
  const texts = useMessages(messages)
  const events: Record<string, string> = texts.events
  const formats = useFormats()
  const headers = [texts.when, texts.subject, texts.what, ...(showsWhom ? [texts.whom] : []), texts.origin]
  return (
    <Table label={label} headers={headers}>
      {entries.map(entry => (
        <tr key={`${entry.request_id} ${entry.at} ${entry.owner} ${entry.event}`}>
          <td>{formats.exactTime(entry.at)}</td>
          <th scope="row">{entry.subject}</th>
          <td>
            {entry.event !== null && (
              <Badge kind={entry.status >= 400 ? 'negative' : 'caution'}>{events[entry.event] ?? entry.event}</Badge>
            )}{' '}
            <code>
              {entry.method} {entry.route}
            </code>{' '}
            {entry.target}
          </td>
          {showsWhom && (
            <td>
              <Whom entry={entry} />
            </td>
          )}
          <td>{entry.ip || '—'}</td>
        </tr>
      ))}
    </Table>
  )
}

function Whom({ entry: { owner, ids, count } }: { entry: AccessEntry }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [id] = ids
  if (owner !== null && count === 1 && id !== undefined)
    return (
      <EntityLink owner={owner} id={id} externalId={null}>
        <bdi>{id}</bdi>
      </EntityLink>
    )
  if (count === 0) return '—'
  const number = formats.number(count)
  return owner === null || owner === 'people' ? texts.people(number) : texts.records(number, owner)
}

const shownEntries = 5

/** The table lists who has seen or changed a person lately. Only a session that may read the access log has it. */
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
