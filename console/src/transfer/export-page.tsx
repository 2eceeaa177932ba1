import { useQuery } from '@tanstack/react-query'
import type { Format } from '../../../transfer/file.ts'
import { useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery, segmentsQuery } from '../entity/schema.ts'
import { useDraft } from '../ui/field.tsx'
import { EmptyState, Page, Problem } from '../ui/page.tsx'
import { Select } from '../ui/select.tsx'
import { ExportPanel, SpreadsheetChoice, useExport } from './export-panel.tsx'
import { ExportRun, type ExportSetup } from './export-run.ts'
import { messages } from './messages.ts'
import { useSpreadsheetLook } from './spreadsheet.ts'
import styles from './transfer.module.css'

/** The page that saves people, a segment of them, or the records of a stack as a file. */
export function ExportPage() {
  const texts = useMessages(messages)
  const mayExport = useScope('exports:read')
  const mayReadPeople = useScope('people:read')
  const mayReadRecords = useScope('records:read')
  const mayReadSchema = useScope('schema:read')
  const definitions = useQuery({ ...schemaQuery, enabled: mayReadSchema })
  const segments = useQuery({ ...segmentsQuery, enabled: mayReadSchema && mayReadPeople })
  const format: Format = mayReadSchema ? 'csv' : 'ndjson'
  const { draft, change } = useDraft<ExportSetup>({ owner: '', format, segment: null, isForSpreadsheets: true })
  const stacks = mayReadRecords ? (definitions.data?.stacks ?? []) : []
  const owners = [
    ...(mayReadPeople ? [{ value: 'people', label: texts.people }] : []),
    ...stacks.map(({ key, name }) => ({ value: key, label: name || key })),
  ]
  const setup = { ...draft, owner: draft.owner || (owners[0]?.value ?? '') }
  const look = useSpreadsheetLook(setup.owner)
  const exporting = useExport(() => new ExportRun(setup, definitions.data, look))
  if (!mayExport || (!mayReadPeople && !mayReadRecords))
    return (
      <Page title={texts.exportTitle}>
        <EmptyState title={texts.nothingToExport} />
      </Page>
    )
  return (
    <Page title={texts.exportTitle} subtitle={texts.exportSubtitle}>
      {definitions.error && <Problem error={definitions.error} onRetry={() => definitions.refetch()} />}
      <div className={styles.options}>
        <Select
          label={texts.what}
          options={owners}
          value={setup.owner}
          onChange={owner => change({ owner, segment: null })}
        />
        <Select<Format>
          label={texts.format}
          options={[
            ...(mayReadSchema ? [{ value: 'csv' as const, label: texts.csv }] : []),
            { value: 'ndjson', label: texts.ndjson },
          ]}
          value={setup.format}
          onChange={format => change({ format })}
        />
        {setup.owner === 'people' && mayReadSchema && (
          <Select
            label={texts.segment}
            options={[
              { value: '', label: texts.everybody },
              ...(segments.data ?? []).map(({ key, name }) => ({ value: key, label: name || key })),
            ]}
            value={setup.segment ?? ''}
            onChange={segment => change({ segment: segment || null })}
          />
        )}
      </div>
      {setup.format === 'csv' && (
        <SpreadsheetChoice
          isSafe={setup.isForSpreadsheets}
          onChange={isForSpreadsheets => change({ isForSpreadsheets })}
        />
      )}
      <ExportPanel {...exporting} />
    </Page>
  )
}
