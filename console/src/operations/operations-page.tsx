import { KithConnectionError, type OperationsMetrics } from '@kith/client'
import { useFormats, useMessages } from '../app/language.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Badge, Facts, Loading, Page, Section } from '../ui/page.tsx'
import { DoctorSection } from './doctor-section.tsx'
import { LoadPlots } from './load-plots.tsx'
import { messages } from './messages.ts'
import { useMetricHistory } from './metric-history.ts'

/** The page for the operator: the state of the service, its load while the page is open, and what the doctor says. */
export function OperationsPage() {
  const texts = useMessages(messages)
  const { latest, points, error, retry } = useMetricHistory()
  return (
    <Page title={texts.title} subtitle={texts.subtitle}>
      {error !== null && error !== undefined && (
        <>
          <Problem error={error} onRetry={retry} />
          {latest && error instanceof KithConnectionError && <Notice kind="caution">{texts.stale}</Notice>}
        </>
      )}
      {!latest && !error && <Loading />}
      {latest && <State metrics={latest} />}
      <DoctorSection />
      <Section title={texts.load}>
        {points.length === 0 ? <p>{texts.waiting}</p> : <LoadPlots points={points} />}
      </Section>
    </Page>
  )
}

function State({ metrics }: { metrics: OperationsMetrics }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { version, started_at, requests, database, webhooks, ledger_entries } = metrics
  const { up, standby } = database
  const badge = (isUp: boolean) => <Badge kind={isUp ? 'positive' : 'negative'}>{isUp ? texts.up : texts.down}</Badge>
  const facts: [string, React.ReactNode][] = [
    [texts.databaseState, badge(up !== false)],
    ...(standby
      ? ([
          [
            texts.standby,
            <>
              {badge(standby.up)}{' '}
              {standby.lag_seconds !== null && texts.behind(formats.number(Math.round(standby.lag_seconds)))}
            </>,
          ],
        ] as [string, React.ReactNode][])
      : []),
    [texts.inFlight, formats.number(requests.in_flight)],
    ...(webhooks
      ? ([
          [
            texts.webhooks,
            texts.webhookCounts(
              formats.number(webhooks.active),
              formats.number(webhooks.failing),
              formats.number(webhooks.disabled),
            ),
          ],
        ] as [string, React.ReactNode][])
      : []),
    ...(ledger_entries === null
      ? []
      : ([[texts.ledger, formats.number(ledger_entries)]] as [string, React.ReactNode][])),
    ...(started_at ? ([[texts.running, formats.dateTime(started_at)]] as [string, React.ReactNode][]) : []),
    [texts.version, version ?? '—'],
  ]
  return <Facts facts={facts} />
}
