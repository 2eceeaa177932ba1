import type { Change } from '@kith/client'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { type Entity, entitiesOf, scopesOf } from '../entity/entities.ts'
import { Loading, Problem } from '../ui/page.tsx'
import { MoreButton } from '../ui/paged-list.tsx'
import { differencesOf, summaryFlags } from './differences.ts'
import styles from './history.module.css'
import { HistoryChanges } from './history-changes.tsx'
import { messages } from './messages.ts'
import { SetBackDialog } from './set-back-dialog.tsx'
import { type Happened, readPage, type Source } from './timeline.ts'

/** An entry of the history: a change of the entity, or a linked record. */
export type Entry = Happened & ({ change: Change } | { change?: never; owner: string; record: Entity })

export type HistoryProps = {
  /** `people`, or the key of a stack. */
  owner: string
  /** The internal identifier: the `id` of a person, the `record_id` of a record. It also finds a deleted one. */
  id: string
  /** The version that the page shows. When it changes, the history is read again. */
  version?: number | undefined
  /** The past version that the page shows, which the history marks. */
  shownVersion?: number | undefined
  /** Shows the entity in a version. Without this handler, the entries have no such action. */
  onShowVersion?: ((version: number) => void) | undefined
  /** Whether changes can be undone: not for the records of an event stack, and not while the page shows a past state. */
  canUndo?: boolean
  /** Called after a change was undone. */
  onChanged?: (() => void) | undefined
  /** Other events, such as the orders of a person, and the element for a record of them. */
  sources?: readonly Source<Entry>[]
  showRecord?: (owner: string, record: Entity) => ReactNode
}

const pageSize = 25

/** The key of all queries of an entity's history, for a write that adds to it. */
export const historyKey = (owner: string, id: string) => ['history', owner, id]

const changesOf = (owner: string, id: string): Source<Entry> => ({
  key: 'changes',
  read: async (after, signal) => {
    const { items, next } = await entitiesOf(owner).history({ id }, { size: pageSize, after, signal }).page()
    return {
      events: items.map(change => ({ key: `${change.sequence}`, at: change.at, change })),
      next: next ?? undefined,
    }
  },
})

/** The changes of a person or record and other events, newest first, each with its author, time and values. */
export function History({ owner, id, version, shownVersion, onShowVersion, ...props }: HistoryProps) {
  const { canUndo = true, onChanged, sources: others = [], showRecord } = props
  const texts = useMessages(messages)
  const mayRead = useScope('changes:read')
  const sources = mayRead ? [changesOf(owner, id), ...others] : others
  const mayWrite = useScope(scopesOf(owner).write)
  const [undone, setUndone] = useState<Change>()
  const query = useInfiniteQuery({
    queryKey: [...historyKey(owner, id), version, sources.map(({ key }) => key)],
    queryFn: ({ pageParam, signal }) => readPage(sources, pageParam, pageSize, signal),
    initialPageParam: undefined as Awaited<ReturnType<typeof readPage<Entry>>>['rest'],
    getNextPageParam: ({ rest }) => rest,
    placeholderData: keepPreviousData,
    enabled: sources.length > 0,
  })
  const { data, error, refetch, fetchNextPage } = query
  if (sources.length === 0) return <p className="muted">{texts.notAllowed}</p>
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const entries = data.pages.flatMap(({ events }) => events)
  if (entries.length === 0) return <p className="muted">{texts.none}</p>
  return (
    <>
      <ol className={styles.list} aria-label={texts.history}>
        {entries.map(entry =>
          entry.change ? (
            <ChangeEntry
              key={entry.key}
              owner={owner}
              change={entry.change}
              isShown={shownVersion !== undefined && entry.change.version === shownVersion}
              onShow={onShowVersion}
              onUndo={mayWrite && canUndo && canBeUndone(entry.change) ? () => setUndone(entry.change) : undefined}
            />
          ) : (
            <li key={entry.key} className={`${styles.entry} ${styles.other}`}>
              {showRecord?.(entry.owner, entry.record)}
            </li>
          ),
        )}
      </ol>
      {error && <Problem error={error} onRetry={() => fetchNextPage()} />}
      <MoreButton query={query}>{texts.showOlder}</MoreButton>
      {undone && (
        <SetBackDialog
          owner={owner}
          id={id}
          change={undone}
          onClose={() => setUndone(undefined)}
          onSaved={() => {
            setUndone(undefined)
            onChanged?.()
          }}
        />
      )}
    </>
  )
}

/**
 * The fields that follow from consent answers, which only the person changes. A change of only these fields cannot be
 * undone.
 */
const followsFromAnswers = new Set<string>([...summaryFlags, 'state'])
const canBeUndone = (change: Change) =>
  change.operation === 'update' &&
  differencesOf(change).some(({ group, key }) => group === 'attribute' || !followsFromAnswers.has(key))

type ChangeEntryProps = {
  owner: string
  change: Change
  isShown: boolean
  onShow: ((version: number) => void) | undefined
  onUndo: (() => void) | undefined
}

function ChangeEntry({ owner, change, isShown, onShow, onUndo }: ChangeEntryProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { version } = change
  return (
    <li className={isShown ? `${styles.entry} ${styles.shown}` : styles.entry} aria-current={isShown}>
      <div className={styles.head}>
        <strong>
          <bdi>{change.actor}</bdi>
        </strong>
        <span>{texts.operations[change.operation]}</span>
      </div>
      <p className="small">
        <time dateTime={change.at}>{formats.exactTime(change.at)}</time> · {formats.relative(change.at)}
        {version !== null && ` · ${texts.version(version)}`}
      </p>
      {(change.operation === 'update' || change.operation === 'create') && (
        <HistoryChanges owner={owner} change={change} />
      )}
      {version !== null && (onShow || onUndo) && (
        <div className={styles.actions}>
          {onShow && !isShown && change.operation !== 'delete' && change.operation !== 'erase' && (
            <button
              type="button"
              className="link"
              aria-label={texts.showVersion(version)}
              onClick={() => onShow(version)}
            >
              {texts.showShort}
            </button>
          )}
          {onUndo && (
            <button type="button" className="link" aria-label={texts.undo(version)} onClick={onUndo}>
              {texts.undoShort}
            </button>
          )}
        </div>
      )}
    </li>
  )
}
