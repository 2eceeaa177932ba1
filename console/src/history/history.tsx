import type { Change } from '@kith/client'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { entitiesOf, scopesOf } from '../entity/entities.ts'
import { attributesOf, useDefinitions } from '../entity/schema.ts'
import { MoreButton } from '../ui/more-button.tsx'
import { Problem } from '../ui/notice.tsx'
import { Loading } from '../ui/page.tsx'
import { differencesOf, summaryFlags } from './differences.ts'
import styles from './history.module.css'
import { HistoryChanges } from './history-changes.tsx'
import { messages } from './messages.ts'
import { SetBackDialog } from './set-back-dialog.tsx'

export type HistoryProps = {
  /** `people`, or the key of a stack. */
  owner: string
  /** The internal identifier: the `id` of a person, the `record_id` of a record. It also finds a deleted one. */
  id: string
  /** The version that the page shows. The history is read again when it changes. */
  version?: number | undefined
  /** The past version that the page shows, which the history marks. */
  shownVersion?: number | undefined
  /** Shows the entity as it was. Without it, the entries have no such action. */
  onShowVersion?: ((version: number) => void) | undefined
  /** Whether changes can be undone: not for the records of an event stack, and not while the page shows a past state. */
  canUndo?: boolean
  /** Called after a change was undone. */
  onChanged?: (() => void) | undefined
}

const pageSize = 25

/** The changes of a person or record, newest first: who, when, and each value before and after. */
export function History(props: HistoryProps) {
  const texts = useMessages(messages)
  const mayRead = useScope('changes:read')
  return mayRead ? <HistoryList {...props} /> : <p className={styles.muted}>{texts.notAllowed}</p>
}

function HistoryList({ owner, id, version, shownVersion, onShowVersion, canUndo = true, onChanged }: HistoryProps) {
  const texts = useMessages(messages)
  const mayWrite = useScope(scopesOf(owner).write)
  const [undone, setUndone] = useState<Change>()
  const query = useInfiniteQuery({
    queryKey: ['history', owner, id, version],
    queryFn: ({ pageParam, signal }) =>
      entitiesOf(owner).history({ id }, { size: pageSize, after: pageParam, signal }).page(),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  })
  const { data, error, refetch, fetchNextPage } = query
  if (!data) return error ? <Problem error={error} onRetry={() => refetch()} /> : <Loading />
  const changes = data.pages.flatMap(({ items }) => items)
  if (changes.length === 0) return <p className={styles.muted}>{texts.none}</p>
  return (
    <>
      <ol className={styles.list} aria-label={texts.history}>
        {changes.map(change => (
          <Entry
            key={change.sequence}
            owner={owner}
            change={change}
            isShown={shownVersion !== undefined && change.version === shownVersion}
            onShow={onShowVersion}
            onUndo={mayWrite && canUndo && canBeUndone(change) ? () => setUndone(change) : undefined}
          />
        ))}
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

/** Consent answers cannot be undone by somebody else, so a change of nothing else cannot be undone. */
const followsFromAnswers = new Set<string>([...summaryFlags, 'state'])
const canBeUndone = (change: Change) =>
  change.operation === 'update' &&
  differencesOf(change).some(({ group, key }) => group === 'attribute' || !followsFromAnswers.has(key))

type EntryProps = {
  owner: string
  change: Change
  isShown: boolean
  onShow: ((version: number) => void) | undefined
  onUndo: (() => void) | undefined
}

function Entry({ owner, change, isShown, onShow, onUndo }: EntryProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const schema = useDefinitions().definitions
  const { version } = change
  return (
    <li className={isShown ? `${styles.entry} ${styles.shown}` : styles.entry} aria-current={isShown}>
      <div className={styles.head}>
        <strong>
          <bdi>{change.actor}</bdi>
        </strong>
        <span>{texts.operations[change.operation]}</span>
      </div>
      <p className={styles.when}>
        <time dateTime={change.at}>{formats.exactTime(change.at)}</time> · {formats.relative(change.at)}
        {version !== null && ` · ${texts.version(version)}`}
      </p>
      {(change.operation === 'update' || change.operation === 'create') && (
        <HistoryChanges change={change} attributes={attributesOf(schema, owner)} consentTypes={schema.consent_types} />
      )}
      {version !== null && (onShow || onUndo) && (
        <div className={styles.actions}>
          {onShow && !isShown && change.operation !== 'delete' && change.operation !== 'erase' && (
            <button
              type="button"
              className={styles.action}
              aria-label={texts.showVersion(version)}
              onClick={() => onShow(version)}
            >
              {texts.showShort}
            </button>
          )}
          {onUndo && (
            <button type="button" className={styles.action} aria-label={texts.undo(version)} onClick={onUndo}>
              {texts.undoShort}
            </button>
          )}
        </div>
      )}
    </li>
  )
}
