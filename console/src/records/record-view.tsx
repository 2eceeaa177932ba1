import type { StackRecord } from '@kith/client'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useSchema } from '../entity/schema.ts'
import { History } from '../history/history.tsx'
import { SetBackDialog } from '../history/set-back-dialog.tsx'
import { Button } from '../ui/button.tsx'
import { Notice } from '../ui/notice.tsx'
import { Badge, Page, Section } from '../ui/page.tsx'
import { DeleteDialog } from './delete-dialog.tsx'
import { messages } from './messages.ts'
import { RecordLinks } from './record-links.tsx'
import { RecordPath } from './record-path.tsx'
import { RecordValues } from './record-values.tsx'
import styles from './records.module.css'

const route = getRouteApi('/shell/records/$stackKey/$recordId')

/** A record: its values, what it is linked with, and what happened to it. */
export function RecordView({ record }: { record: StackRecord }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('records:write')
  const navigate = route.useNavigate()
  const queryClient = useQueryClient()
  const definitions = useSchema()
  const [dialog, setDialog] = useState<'delete' | 'set-back'>()
  const { stack_key: stackKey, record_id: recordId, external_id, version, as_of } = record
  const isEvent = definitions.stacks.find(({ key }) => key === stackKey)?.kind === 'event'
  const isPast = as_of !== undefined
  const canEdit = mayWrite && !isPast && !isEvent
  const refresh = () => queryClient.invalidateQueries({ queryKey: ['records', stackKey] })
  const showNow = () => navigate({ search: {} })
  const close = () => setDialog(undefined)
  return (
    <Page
      title={external_id ?? recordId}
      subtitle={<RecordPath stackKey={stackKey} recordId={recordId} />}
      actions={mayWrite && !isPast && <Button onPress={() => setDialog('delete')}>{texts.delete}</Button>}
    >
      {isPast && (
        <PastNotice
          record={record}
          onShowNow={showNow}
          onSetBack={mayWrite && !isEvent ? () => setDialog('set-back') : undefined}
        />
      )}
      <div className={styles.recordColumns!}>
        <div className={styles.stack!}>
          <Section title={texts.values}>
            <RecordState record={record} isEvent={isEvent} />
            <RecordValues record={record} canEdit={canEdit} definitions={definitions} />
          </Section>
          {!isPast && <RecordLinks stackKey={stackKey} recordId={recordId} definitions={definitions} />}
        </div>
        <Section title={texts.timeline}>
          <History
            owner={stackKey}
            id={recordId}
            version={version}
            canUndo={canEdit}
            onChanged={refresh}
            onShowVersion={shown => navigate({ search: { version: shown } })}
          />
        </Section>
      </div>
      {dialog === 'delete' && <DeleteDialog record={record} onClose={close} />}
      {dialog === 'set-back' && (
        <SetBackDialog
          owner={stackKey}
          id={recordId}
          version={version}
          onClose={close}
          onSaved={() => {
            close()
            refresh()
            showNow()
          }}
        />
      )}
    </Page>
  )
}

function RecordState({ record, isEvent }: { record: StackRecord; isEvent: boolean }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { state, version, created_at, updated_at } = record
  return (
    <p className={styles.state!}>
      {state === 'placeholder' && <Badge kind="caution">{texts.placeholder}</Badge>}
      {isEvent && <Badge>{texts.immutable}</Badge>}
      <span className={styles.muted!}>
        {texts.versionOf(version)} · {texts.createdAt(formats.dateTime(created_at))}
        {updated_at !== created_at && ` · ${texts.updatedAt(formats.dateTime(updated_at))}`}
      </span>
    </p>
  )
}

type PastNoticeProps = { record: StackRecord; onShowNow: () => void; onSetBack: (() => void) | undefined }

function PastNotice({ record: { version, as_of }, onShowNow, onSetBack }: PastNoticeProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <Notice title={texts.pastVersion(version, formats.exactTime(as_of!.at))}>
      <div className={styles.actions!}>
        <Button onPress={onShowNow}>{texts.showNow}</Button>
        {onSetBack && <Button onPress={onSetBack}>{texts.setBack}</Button>}
      </div>
    </Notice>
  )
}
