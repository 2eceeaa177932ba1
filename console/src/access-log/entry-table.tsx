import type { AccessEntry } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { isUnlimited } from '../app/field-rights.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, Section } from '../ui/page.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { accessLogQuery } from './queries.ts'

type EntryTableProps = {
  label: string
  entries: readonly AccessEntry[]
  /** Whether the entries show their people or records. On the page of one person they do not. */
  showsWhom?: boolean
}

/** Entries of the access log, newest first. */
export function EntryTable({ label, entries, showsWhom = true }: EntryTableProps) {
  const texts = useMessages(messages)
  const events: Record<string, string> = texts.events
  const formats = useFormats()
  return (
    <ColumnTable
      label={label}
      rows={entries}
      rowKey={({ request_id, at, owner, event }) => `${request_id} ${at} ${owner} ${event}`}
      columns={[
        [texts.when, ({ at }) => formats.exactTime(at)],
        [texts.who, ({ subject }) => subject, 'name'],
        [
          texts.what,
          ({ event, status, method, route, target }) => (
            <>
              {event !== null && <Badge kind={status >= 400 ? 'negative' : 'caution'}>{events[event] ?? event}</Badge>}{' '}
              <code>
                {method} {route}
              </code>{' '}
              {target}
            </>
          ),
        ],
        showsWhom && [texts.whom, entry => <Whom entry={entry} />],
        [texts.origin, ({ ip }) => ip || '—'],
      ]}
    />
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

const readEntries = 100
const shownEntries = 5

/**
 * The last entry of each subject. The page of a person adds several entries of its own reader, which would otherwise
 * fill the list.
 */
const lastOfEach = (entries: readonly AccessEntry[]) =>
  entries.filter((entry, index) => entries.findIndex(({ subject }) => subject === entry.subject) === index)

/**
 * The table lists the subjects that recently saw or changed a person. Only a session that may read the access log has
 * it.
 */
export function SeenBy({ id }: { id: string }) {
  const texts = useMessages(messages)
  const mayRead = useScope('access:read') && isUnlimited()
  const log = useInfiniteQuery({
    ...accessLogQuery({ entity: id, kind: 'access' }, readEntries),
    select: ({ pages }) => lastOfEach(pages[0]!.items).slice(0, shownEntries),
    enabled: mayRead,
  })
  if (!mayRead) return null
  return (
    <Section title={texts.seenBy}>
      <Loaded query={log} none={<p>{texts.neverSeen}</p>}>
        {entries => <EntryTable label={texts.seenBy} entries={entries} showsWhom={false} />}
      </Loaded>
      <p>
        <Link to="/access-log" search={{ entity: id }}>
          {texts.wholeLog}
        </Link>
      </p>
    </Section>
  )
}
