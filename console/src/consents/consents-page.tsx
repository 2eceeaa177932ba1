import type { ConsentStatistics, ConsentStatisticsBody, ConsentType } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { schemaQuery } from '../entity/schema.ts'
import { Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState, Loading, Page, Section } from '../ui/page.tsx'
import { Plot } from '../ui/plot.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import styles from './consents.module.css'
import { messages } from './messages.ts'
import type { ConsentsSearch } from './search.ts'

type Interval = ConsentStatisticsBody['interval']
const dayMs = 86_400_000
/** How far the plots go back, in days. */
const spans: Record<Interval, number> = { day: 29, week: 25 * 7, month: 335 }

/** The page that counts consents: who may be written to now, and the answers over time. */
export function ConsentsPage() {
  const texts = useMessages(messages)
  const { interval = 'day' } = useSearch({ strict: false }) as ConsentsSearch
  const navigate = useNavigate()
  const mayReadSchema = useScope('schema:read')
  const types = useQuery({
    ...schemaQuery,
    enabled: mayReadSchema,
    select: definitions => definitions.consent_types,
  })
  const statistics = useQuery({
    queryKey: ['consents', 'statistics', interval],
    queryFn: ({ signal }) =>
      client.consents.statistics(
        { interval, from: new Date(Date.now() - spans[interval] * dayMs).toISOString() },
        { signal },
      ),
  })
  const names = new Map((types.data ?? []).map(({ id, name, key }: ConsentType) => [id, name || key]))
  const nameOf = (id: number) => names.get(id) ?? String(id)
  return (
    <Page title={texts.title} subtitle={texts.subtitle}>
      <div className={styles.controls!}>
        <Select<Interval>
          label={texts.interval}
          options={[
            { value: 'day', label: texts.days },
            { value: 'week', label: texts.weeks },
            { value: 'month', label: texts.months },
          ]}
          value={interval}
          onChange={chosen => navigate({ to: '/consents', search: { interval: chosen } })}
        />
      </div>
      {statistics.isPending && <Loading />}
      {statistics.error && <Problem error={statistics.error} onRetry={() => statistics.refetch()} />}
      {statistics.data?.items.length === 0 && <EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}
      {statistics.data && statistics.data.items.length > 0 && (
        <>
          <ContactTable statistics={statistics.data} nameOf={nameOf} />
          <AnswerPlots statistics={statistics.data} nameOf={nameOf} />
        </>
      )}
    </Page>
  )
}

type PartProps = { statistics: ConsentStatistics; nameOf: (id: number) => string }

function ContactTable({ statistics, nameOf }: PartProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const counts = [texts.mayContact, texts.granted, texts.refused, texts.pending]
  const headers = [texts.purpose, texts.channel, ...counts.map(numberHeader)]
  const last = (values: number[]) => formats.number(values.at(-1) ?? 0)
  return (
    <Section title={texts.now}>
      <p className={styles.muted!}>{texts.nowHelp}</p>
      <Table label={texts.now} headers={headers}>
        {statistics.items.map(({ consent_type_id, channel, contactable, granted, refused, pending }) => (
          <tr key={`${consent_type_id} ${channel}`}>
            <th scope="row">{nameOf(consent_type_id)}</th>
            <td>{texts[channel]}</td>
            <td className={numberCell}>
              <strong>{formats.number(contactable)}</strong>
            </td>
            <td className={numberCell}>{last(granted)}</td>
            <td className={numberCell}>{last(refused)}</td>
            <td className={numberCell}>{last(pending)}</td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}

function AnswerPlots({ statistics, nameOf }: PartProps) {
  const texts = useMessages(messages)
  const times = statistics.ends.map(end => Date.parse(end) / 1_000)
  return (
    <Section title={texts.overTime}>
      <div className={styles.plots!}>
        {statistics.items.map(({ consent_type_id, channel, granted, refused, pending }) => (
          <Plot
            key={`${consent_type_id} ${channel}`}
            label={texts.plot(nameOf(consent_type_id), texts[channel])}
            times={times}
            series={[
              { label: texts.granted, color: '--positive', values: granted },
              { label: texts.refused, color: '--negative', values: refused },
              { label: texts.pending, color: '--caution', values: pending },
            ]}
          />
        ))}
      </div>
    </Section>
  )
}
