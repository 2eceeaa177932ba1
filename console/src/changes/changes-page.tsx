import type { Change } from '@kith/client'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { FieldGroup, TextField } from '../ui/field.tsx'
import { Badge, EmptyState, Facts, Notice, Page, Problem } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { useSettled } from '../ui/use-settled.ts'
import { type Column, VirtualTable } from '../ui/virtual-table.tsx'
import { type FeedStatus, useChangeFeed } from './change-feed.ts'
import styles from './changes.module.css'
import { messages } from './messages.ts'
import { type ChangesSearch, validateChangesSearch } from './search.ts'

/** The page of the change log. It follows the log while it is open. */
export function ChangesPage() {
  const texts = useMessages(messages)
  const search = useSearch({ strict: false }) as ChangesSearch
  const navigate = useNavigate()
  const [isPaused, setPaused] = useState(false)
  const [shown, setShown] = useState<Change | null>(null)
  const feed = useChangeFeed(search, isPaused)
  const change = (changed: ChangesSearch) => navigate({ to: '/changes', search: changed, replace: true })
  const isFiltered = Object.values(search).some(Boolean)
  return (
    <Page
      title={texts.changes}
      subtitle={texts.subtitle}
      actions={
        <>
          <span className={styles.status}>
            <Status status={feed.status} />
          </span>
          <Button onPress={() => setPaused(!isPaused)}>{isPaused ? texts.goOn : texts.pause}</Button>
        </>
      }
    >
      <Filters search={search} onChange={change} />
      {feed.status === 'lost' && <Notice kind="caution">{texts.lost}</Notice>}
      {feed.status === 'failed' && <Problem error={feed.error} onRetry={() => location.reload()} />}
      {feed.warnings.map(message => (
        <Notice key={message} kind="caution">
          {message}
        </Notice>
      ))}
      {feed.changes.length === 0 && feed.status !== 'connecting' ? (
        <EmptyState title={feed.hasOlder || isFiltered ? texts.noneMatch : texts.none}>
          {feed.hasOlder ? texts.noneMatchAdvice : texts.noneAdvice}
        </EmptyState>
      ) : (
        <ChangeTable rows={feed.changes} onShow={setShown} />
      )}
      {feed.hasOlder && (
        <div>
          <Button onPress={() => feed.showOlder()}>{texts.older}</Button>
        </div>
      )}
      {shown && <ChangeDialog change={shown} onClose={() => setShown(null)} />}
    </Page>
  )
}

function Status({ status }: { status: FeedStatus }) {
  const texts = useMessages(messages)
  if (status === 'live') return <Badge kind="positive">{texts.live}</Badge>
  if (status === 'paused') return <Badge kind="caution">{texts.paused}</Badge>
  return <Badge>{texts.connecting}</Badge>
}

function Filters({ search, onChange }: { search: ChangesSearch; onChange: (search: ChangesSearch) => void }) {
  const texts = useMessages(messages)
  const change = (changed: { [Name in keyof ChangesSearch]: string }) =>
    onChange(validateChangesSearch({ ...search, ...changed }))
  return (
    <FieldGroup look="grid">
      <Select<string>
        label={texts.what}
        options={{ '': texts.all, ...texts.subjects }}
        value={search.subject ?? ''}
        onChange={subject => change({ subject })}
      />
      <Select<string>
        label={texts.operation}
        options={{ '': texts.all, ...texts.operations }}
        value={search.operation ?? ''}
        onChange={operation => change({ operation })}
      />
      <EntityField entity={search.entity ?? ''} onChange={entity => change({ entity })} />
    </FieldGroup>
  )
}

/** The page reads the feed after this pause in typing. */
const typingPauseMs = 250

function EntityField({ entity, onChange }: { entity: string; onChange: (entity: string) => void }) {
  const texts = useMessages(messages)
  const [text, setText] = useState(entity)
  const settled = useSettled(text.trim(), typingPauseMs)
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed changes the address
  useEffect(() => {
    if (settled !== entity) onChange(settled)
  }, [settled])
  return <TextField label={texts.identifier} help={texts.entityHelp} maxLength={255} value={text} onChange={setText} />
}

/** The values before and after a change. */
type Sides = Pick<Change, 'before' | 'after'>

const kinds: Partial<Record<Change['operation'], 'positive' | 'negative'>> = {
  create: 'positive',
  restore: 'positive',
  delete: 'negative',
  erase: 'negative',
}

function ChangeTable({ rows, onShow }: { rows: Change[]; onShow: (change: Change) => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const columns: Column<Change>[] = [
    {
      key: 'number',
      header: texts.number,
      minWidth: 80,
      grow: 0.3,
      align: 'end',
      render: ({ sequence }) => formats.number(sequence),
    },
    { key: 'at', header: texts.when, minWidth: 205, grow: 0.4, render: ({ at }) => formats.exactTime(at) },
    {
      key: 'subject',
      header: texts.what,
      minWidth: 165,
      grow: 0.4,
      render: ({ subject, stack_key }) => stack_key ?? texts.subjects[subject],
    },
    {
      key: 'entity',
      header: texts.identifier,
      minWidth: 130,
      render: ({ external_id, id }) => external_id ?? String(id),
    },
    {
      key: 'operation',
      header: texts.operation,
      minWidth: 115,
      grow: 0.4,
      render: ({ operation }) => <Badge kind={kinds[operation] ?? 'neutral'}>{texts.operations[operation]}</Badge>,
    },
    { key: 'fields', header: texts.fields, minWidth: 140, render: change => fieldsOf(change).join(', ') },
    { key: 'who', header: texts.who, minWidth: 95, grow: 0.5, render: ({ actor }) => actor },
    {
      key: 'show',
      header: texts.show,
      minWidth: 95,
      grow: 0.2,
      render: change => (
        <button
          type="button"
          className={styles.show}
          aria-label={texts.showChange(formats.number(change.sequence))}
          onClick={() => onShow(change)}
        >
          {texts.show}
        </button>
      ),
    },
  ]
  return (
    <VirtualTable
      label={texts.changes}
      columns={columns}
      rows={rows}
      rowKey={({ sequence }) => String(sequence)}
      total={rows.length}
    />
  )
}

const fieldsOf = ({ before, after }: Sides) => [...new Set(Object.keys({ ...before, ...after }))]

/** A change: its author, its time, and each field before and after. */
export function ChangeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { sequence, subject, operation, external_id, id, stack_key, actor, at, request_id } = change
  return (
    <Dialog title={texts.change(formats.number(sequence))} onClose={onClose} size="wide">
      <Facts
        facts={[
          [texts.what, `${stack_key ?? texts.subjects[subject]} ${external_id ?? id}`],
          [texts.operation, texts.operations[operation]],
          [texts.who, actor],
          [texts.when, formats.exactTime(at)],
          [texts.request, <code key="request">{request_id}</code>],
        ]}
      />
      <ChangedFields {...change} />
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}

/** A row for each field that changed. */
function ChangedFields({ before, after }: Sides) {
  const texts = useMessages(messages)
  const fields = fieldsOf({ before, after })
  if (fields.length === 0) return null
  return (
    <ColumnTable
      label={texts.fields}
      rows={fields}
      rowKey={field => field}
      columns={[
        [texts.field, field => field, 'name'],
        [texts.before, field => shown(before?.[field])],
        [texts.after, field => shown(after?.[field])],
      ]}
    />
  )
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return '—'
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1)
}
