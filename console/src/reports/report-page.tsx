import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { csvText } from '../../../transfer/export-shape.ts'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { useScope, useSession } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { ownersOf, useDefinitions } from '../entity/schema.ts'
import { internalIdOf, Targets } from '../entity/value.tsx'
import { countConditions } from '../filters/filter-tree.ts'
import { messages as filterMessages } from '../filters/messages.ts'
import { settingsQuery } from '../schema/queries.ts'
import { byteOrderMark } from '../transfer/export-run.ts'
import { spreadsheetLook } from '../transfer/spreadsheet.ts'
import { Button } from '../ui/button.tsx'
import { FieldGroup } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { EmptyState, Loading, Notice, Page, Problem } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { ColumnTable, type TableColumn } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { isComplete, isNumeric, type Result, reportFields, reportOf, reportQuery } from './report.ts'
import { ReportControls } from './report-controls.tsx'
import { ReportPlot } from './report-plot.tsx'
import { useReportTexts } from './report-texts.ts'
import styles from './reports.module.css'
import type { ReportSearch } from './search.ts'

const FilterPanel = lazy(() => import('../list/filter-panel.tsx'))

/** The page of a report: its choices, and the result as a table and a plot. The address has its whole state. */
export function ReportPage() {
  const texts = useMessages(messages)
  const mayReadSchema = useScope('schema:read')
  const { isLoading, error, refetch } = useDefinitions()
  const settings = useQuery({ ...settingsQuery, enabled: mayReadSchema })
  return (
    <Page title={texts.reports} subtitle={texts.subtitle}>
      {isLoading || settings.isLoading ? (
        <Loading />
      ) : error ? (
        <Problem error={error} onRetry={() => refetch()} />
      ) : (
        <ReportOfAddress timeZone={settings.data?.time_zone ?? 'UTC'} />
      )}
    </Page>
  )
}

function ReportOfAddress({ timeZone }: { timeZone: string }) {
  const texts = useMessages(messages)
  const filterTexts = useMessages(filterMessages)
  const { number } = useFormats()
  const given = useSearch({ strict: false }) as ReportSearch
  const navigate = useNavigate()
  const { definitions } = useDefinitions()
  const [isFilterOpen, setFilterOpen] = useState(false)
  const { scopes } = useSession()
  const mayRead = (target: string) => scopes.includes(scopesOf(target).read)
  const { owner = ownersOf(definitions).find(mayRead) ?? 'people', filter } = given
  const search = { ...given, owner }
  const fields = reportFields(owner, definitions, filterTexts, mayRead)
  const report = reportOf(search, fields)
  const query = useQuery({ ...reportQuery(report, timeZone), enabled: isComplete(report) })
  const change = (changed: Partial<Record<keyof ReportSearch, unknown>>) =>
    navigate({ to: '.', search: before => ({ ...before, ...changed }) as never, resetScroll: false })
  const conditions = filter ? countConditions(filter) : 0
  return (
    <>
      <Form
        label={texts.controls}
        onSubmit={() => query.refetch()}
        write={{ error: query.error, isPending: query.isFetching }}
        isWide
      >
        <ReportControls report={report} fields={fields} definitions={definitions} change={change} />
        <FieldGroup name="/filter">
          <div className="row">
            <Button onPress={() => setFilterOpen(!isFilterOpen)} aria-expanded={isFilterOpen}>
              {conditions > 0 ? texts.filterOf(number(conditions)) : texts.filter}
            </Button>
            <DownloadButton result={query.error ? undefined : query.data} isDisabled={query.isPlaceholderData} />
          </div>
        </FieldGroup>
      </Form>
      <Suspense fallback={<Loading />}>
        {isFilterOpen && (
          <FilterPanel
            owner={owner}
            search={filter ? { filter } : {}}
            change={changed => 'filter' in changed && change({ filter: changed.filter })}
            onClose={() => setFilterOpen(false)}
          />
        )}
      </Suspense>
      {isComplete(report) ? (
        query.isFetching && !query.data && <Loading />
      ) : (
        <p className="small">{texts.incomplete}</p>
      )}
      {query.data && !query.error && isComplete(report) && (
        <ReportResult result={query.data} isStale={query.isPlaceholderData} timeZone={timeZone} />
      )}
    </>
  )
}

function DownloadButton({ result, isDisabled }: { result: Result | undefined; isDisabled: boolean }) {
  const texts = useMessages(messages)
  const { fields } = useMessages(entityMessages)
  const { measureText } = useReportTexts()
  const { locale } = useLanguage()
  const save = (result: Result) => {
    const { report } = result
    const text = csvOf(result, { measure: measureText(report), identifier: fields.external_id, locale })
    const day = new Date().toISOString().slice(0, 10)
    saveBlob(new Blob([text], { type: 'text/csv' }), `report-${report.owner}-${day}.csv`)
  }
  return (
    <Button onPress={() => result && save(result)} isDisabled={!result || isDisabled}>
      {texts.download}
    </Button>
  )
}

function ReportResult({ result, isStale, timeZone }: { result: Result; isStale: boolean; timeZone: string }) {
  const texts = useMessages(messages)
  const { number } = useFormats()
  const { report, aggregate } = result
  if (aggregate.groups.length === 0) return <EmptyState title={texts.nothing} />
  const skipped = aggregate.skipped.reduce((sum, { values }) => sum + values, 0)
  const isOfDays = report.groups.some(({ field }) => field.type === 'datetime')
  return (
    <div aria-busy={isStale} className={isStale ? styles.stale : undefined}>
      <div className={styles.result}>
        <ReportPlot {...result} />
        <ReportTable {...result} />
      </div>
      {report.groups.length > 0 && aggregate.groups.length === report.limit && (
        <p className="small">{texts.cut(number(report.limit))}</p>
      )}
      {isOfDays && <p className="small">{texts.timeZone(timeZone)}</p>}
      {skipped > 0 && (
        <Notice kind="caution">
          <p>{texts.skipped(number(skipped))}</p>
        </Notice>
      )}
    </div>
  )
}

type AggregateGroup = Result['aggregate']['groups'][number]

/** The groups of a report with their results. */
export function ReportTable({ report, aggregate, labels }: Result) {
  const texts = useMessages(messages)
  const { groupText, valueText, measureText } = useReportTexts()
  const kind = isNumeric(report) ? (['number'] as const) : ([] as const)
  const groups = report.groups.map((group, at): TableColumn<AggregateGroup> => {
    const { label, target } = group.field
    const cell = ({ by: { [at]: value } }: AggregateGroup) =>
      target !== undefined && value !== null ? (
        <Targets owner={target} value={value} labels={labels[at]} />
      ) : (
        <bdi>{groupText(group, value)}</bdi>
      )
    return [label, cell, 'name']
  })
  return (
    <ColumnTable
      label={texts.table}
      rows={aggregate.groups}
      rowKey={(_, index) => index}
      columns={[
        ...(groups.length > 0 ? groups : ([[texts.group, () => texts.all, 'name']] as const)),
        [measureText(report), ({ measures: [value] }) => valueText(report, value), ...kind],
      ]}
    />
  )
}

type Words = { measure: string; identifier: string; locale: string }
type Cell = string | number | boolean | null

/**
 * A result as a CSV file for spreadsheets of the locale. The target of a relationship has its name and its identifier.
 * No text runs as a formula.
 */
export function csvOf({ report, aggregate, labels }: Result, { measure, identifier, locale }: Words): string {
  const header = report.groups.flatMap(({ field: { label, target } }) =>
    target === undefined ? [label] : [label, `${label}: ${identifier}`],
  )
  const cellsOf = (value: unknown, at: number): Cell[] => {
    if (report.groups[at]!.field.target === undefined) return [cellOf(value)]
    const target = internalIdOf(value) ?? cellOf(value)
    const names = labels[at] ?? {}
    return [typeof target === 'string' && Object.hasOwn(names, target) ? names[target]! : target, target]
  }
  const rows = aggregate.groups.map(({ by, measures }) => [...by.flatMap(cellsOf), cellOf(measures[0])])
  return byteOrderMark + csvText([[...header, measure], ...rows], spreadsheetLook(locale))
}

const cellOf = (value: unknown): Cell =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell)
