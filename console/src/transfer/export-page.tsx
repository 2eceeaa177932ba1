import { useQuery } from '@tanstack/react-query'
import { useState, useSyncExternalStore } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Actions } from '../ui/dialog.tsx'
import { Checkbox, Select } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { EmptyState, Page } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import type { ExportRun } from './export-run.ts'
import { createExport, type ExportSetup } from './export-setup.ts'
import type { FileFormat } from './file-source.ts'
import { messages } from './messages.ts'
import styles from './transfer.module.css'

/** The page that saves people, a segment of them, or the records of a stack as a file. */
export function ExportPage() {
  const texts = useMessages(messages)
  const mayReadPeople = useScope('people:read')
  const mayReadRecords = useScope('records:read')
  const mayReadSchema = useScope('schema:read')
  const definitions = useQuery({ ...schemaQuery, enabled: mayReadSchema })
  const segments = useQuery({
    queryKey: ['segments'],
    queryFn: () => client.segments.list(),
    enabled: mayReadSchema && mayReadPeople,
  })
  const [chosen, setSetup] = useState<ExportSetup>({
    owner: '',
    format: mayReadSchema ? 'csv' : 'ndjson',
    segment: null,
    isSafeForSpreadsheets: true,
  })
  const [run, setRun] = useState<ExportRun | null>(null)
  const stacks = mayReadRecords ? (definitions.data?.stacks ?? []) : []
  const owners = [
    ...(mayReadPeople ? [{ value: 'people', label: texts.people }] : []),
    ...stacks.map(({ key, name }) => ({ value: key, label: name || key })),
  ]
  const setup = { ...chosen, owner: chosen.owner || (owners[0]?.value ?? '') }
  const start = async () => {
    const next = await createExport(setup, definitions.data)
    setRun(next)
    const file = await next.start()
    if (file) saveBlob(file, next.job.fileName)
  }
  if (!mayReadPeople && !mayReadRecords)
    return (
      <Page title={texts.exportTitle}>
        <EmptyState title={texts.nothingToExport} />
      </Page>
    )
  return (
    <Page title={texts.exportTitle} subtitle={texts.exportSubtitle}>
      {definitions.error && <Problem error={definitions.error} onRetry={() => definitions.refetch()} />}
      <div className={styles.options!}>
        <Select
          label={texts.what}
          options={owners}
          value={setup.owner}
          onChange={owner => setSetup({ ...setup, owner, segment: null })}
        />
        <Select<FileFormat>
          label={texts.format}
          options={[
            ...(mayReadSchema ? [{ value: 'csv' as const, label: texts.csv }] : []),
            { value: 'ndjson', label: texts.ndjson },
          ]}
          value={setup.format}
          onChange={format => setSetup({ ...setup, format })}
        />
        {setup.owner === 'people' && mayReadSchema && (
          <Select
            label={texts.segment}
            options={[
              { value: '', label: texts.everybody },
              ...(segments.data ?? []).map(({ key, name }) => ({ value: key, label: name || key })),
            ]}
            value={setup.segment ?? ''}
            onChange={segment => setSetup({ ...setup, segment: segment || null })}
          />
        )}
      </div>
      {setup.format === 'csv' && (
        <div>
          <Checkbox
            isSelected={setup.isSafeForSpreadsheets}
            onChange={isSafeForSpreadsheets => setSetup({ ...setup, isSafeForSpreadsheets })}
          >
            {texts.safeFormulas}
          </Checkbox>
          <p className={styles.muted!}>{texts.safeFormulasHelp}</p>
        </div>
      )}
      {run ? <ExportPanel key={run.job.fileName} run={run} onStart={start} /> : <StartExport onStart={start} />}
    </Page>
  )
}

function StartExport({ onStart }: { onStart: () => Promise<void> }) {
  const texts = useMessages(messages)
  return (
    <Actions>
      <Button look="primary" onPress={onStart}>
        {texts.startExport}
      </Button>
    </Actions>
  )
}

function ExportPanel({ run, onStart }: { run: ExportRun; onStart: () => Promise<void> }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { phase, count, bytes, error } = useSyncExternalStore(run.subscribe, run.getState)
  const { total, fileName } = run.job
  const isActive = phase === 'running' || phase === 'paused'
  const shown = formats.number(count)
  return (
    <>
      {isActive && (
        <div className={styles.progress!}>
          <p className={styles.fileName!}>
            <strong>{texts.exporting}</strong> · {fileName}
          </p>
          <progress
            aria-label={texts.exporting}
            {...(total !== null && { value: total === 0 ? 1 : count / total })}
            max={1}
          />
          <p className={styles.muted!}>
            {total === null ? shown : texts.exportedOf(shown, formats.number(total))} · {formats.bytes(bytes)}
          </p>
        </div>
      )}
      {phase === 'paused' && (
        <Notice kind="caution" title={texts.exportPaused}>
          <p>{(error as Error).message}</p>
          <p>{texts.exportPausedAdvice}</p>
          <div>
            <Button onPress={() => run.goOn()}>{texts.goOn}</Button>
          </div>
        </Notice>
      )}
      {phase === 'done' && (
        <Notice kind="success" title={texts.exported(shown)}>
          <p>
            {fileName} · {formats.bytes(bytes)}
          </p>
          <div>
            <Button onPress={() => saveBlob(run.file(), fileName)}>{texts.saveFile}</Button>
          </div>
        </Notice>
      )}
      {phase === 'cancelled' && <Notice kind="caution" title={texts.exportCancelled} />}
      {phase === 'failed' && <Problem error={error} />}
      {isActive ? (
        <Actions>
          <Button onPress={() => run.cancel()}>{texts.cancel}</Button>
        </Actions>
      ) : (
        <StartExport onStart={onStart} />
      )}
    </>
  )
}
