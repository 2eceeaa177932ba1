import type { Webhook, WebhookDelivery, WebhookDeliveryPage, WebhookTestDelivery } from '@kith/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { Badge, EmptyState, Facts, Notice, Problem, Section } from '../ui/page.tsx'
import { MoreButton } from '../ui/paged-list.tsx'
import { Select } from '../ui/select.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { deliveriesQuery, webhooksKey } from './queries.ts'
import styles from './webhooks.module.css'

type State = WebhookDelivery['state']
const kinds = {
  due: 'caution',
  failing: 'negative',
  blocked: 'caution',
  delivered: 'positive',
  failed: 'negative',
} as const satisfies Record<State, string>

type Row = WebhookDelivery | WebhookTestDelivery
const isTest = (row: Row): row is WebhookTestDelivery => 'at' in row
const timeOf = (row: Row) => (isTest(row) ? row.at : row.created_at)
const attemptsOf = (row: Row) => (isTest(row) ? 1 : row.attempts)

/**
 * The rows of the table: first the delivery that the receiver does not accept, then the deliveries and tests, newest
 * first. Tests that are older than the deliveries read so far come with later pages.
 */
function rowsOf(
  pages: Pick<WebhookDeliveryPage, 'items' | 'has_more' | 'tests'>[],
  first: WebhookDelivery | null,
): Row[] {
  const items = pages.flatMap(page => page.items).filter(({ sequence }) => sequence !== first?.sequence)
  const last = pages.at(-1)?.has_more ? items.at(-1) : undefined
  const tests = (pages[0]?.tests ?? []).filter(({ at }) => !last || at >= last.created_at)
  const sorted = [...items, ...tests].sort((a, b) => timeOf(b).localeCompare(timeOf(a)))
  return first ? [first, ...sorted] : sorted
}

/** The deliveries and tests of a webhook. Each can be opened, and a delivery can be sent again. */
export function Deliveries({ webhook: { id, backlog } }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('webhooks:write')
  const [state, setState] = useState<State | ''>('')
  const [shown, setShown] = useState<Row | null>(null)
  const sendAgain = useWrite(
    ({ sequence }: WebhookDelivery) => client.webhooks.replay(id, { after: sequence - 1, until: sequence }),
    { refresh: [webhooksKey] },
  )
  const failing = backlog.blocking?.state === 'failing' ? backlog.blocking : null
  const first = state === '' || state === 'failing' ? failing : null
  const deliveries = useInfiniteQuery({
    ...deliveriesQuery(id, state),
    select: ({ pages }) => rowsOf(pages, first),
    refetchInterval: 5_000,
  })
  return (
    <Section
      title={texts.deliveries}
      actions={
        <div className={styles.stateFilter}>
          <Select<State | ''>
            aria-label={texts.state}
            options={{ '': texts.all, ...texts.states }}
            value={state}
            onChange={setState}
          />
        </div>
      }
    >
      {failing && <NotAccepted delivery={failing} />}
      {sendAgain.isSuccess && (
        <Notice kind="success" title={texts.sentAgain(formats.number(sendAgain.variables.sequence))} />
      )}
      {sendAgain.error && <Problem error={sendAgain.error} />}
      <Loaded query={deliveries} none={<EmptyState title={texts.noDeliveries}>{texts.noDeliveriesAdvice}</EmptyState>}>
        {rows => <DeliveryTable rows={rows} onShow={setShown} onSendAgain={mayWrite ? sendAgain.mutate : null} />}
      </Loaded>
      <MoreButton query={deliveries}>{texts.more}</MoreButton>
      {shown && <DeliveryDialog row={shown} onClose={() => setShown(null)} />}
    </Section>
  )
}

/** The delivery that the receiver does not accept, and its response. */
function NotAccepted({ delivery }: { delivery: WebhookDelivery }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { said } = useServiceTexts()
  const { sequence, response_status, response, error, next_attempt_at } = delivery
  const reason = response_status === null ? error && said(error) : String(response_status)
  return (
    <Notice kind="caution" title={texts.notAccepted(formats.number(sequence), reason ?? texts.noResponse)}>
      {response && <ScrollingText text={response} />}
      {next_attempt_at && <p>{texts.nextAttempt(formats.exactTime(next_attempt_at))}</p>}
    </Notice>
  )
}

type DeliveryTableProps = {
  rows: Row[]
  onShow: (row: Row) => void
  onSendAgain: ((delivery: WebhookDelivery) => void) | null
}

function DeliveryTable({ rows, onShow, onSendAgain }: DeliveryTableProps) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { said } = useServiceTexts()
  const nameOf = (row: Row) => (isTest(row) ? row.type : formats.number(row.sequence))
  const lastAttemptOf = (row: Row) => {
    const at = isTest(row) ? row.at : row.last_attempt_at
    return at ? formats.exactTime(at) : '—'
  }
  return (
    <ColumnTable
      label={texts.deliveries}
      rows={rows}
      rowKey={({ message_id }) => message_id}
      columns={[
        [texts.change, row => (isTest(row) ? '—' : nameOf(row)), 'number'],
        [texts.type, ({ type }) => type],
        [texts.state, row => <DeliveryState row={row} />],
        [texts.attempts, row => formats.number(attemptsOf(row)), 'number'],
        [texts.response, ({ response_status, error }) => response_status ?? (error === null ? '—' : said(error))],
        [texts.when, lastAttemptOf],
        [
          texts.details,
          row => (
            <div className={styles.buttons}>
              <Button aria-label={texts.show(nameOf(row))} onPress={() => onShow(row)}>
                {texts.details}
              </Button>
              {onSendAgain && !isTest(row) && (
                <Button aria-label={`${texts.sendAgain}: ${nameOf(row)}`} onPress={() => onSendAgain(row)}>
                  {texts.sendAgain}
                </Button>
              )}
            </div>
          ),
        ],
      ]}
    />
  )
}

function DeliveryState({ row }: { row: Row }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <>
      <Badge kind={kinds[row.state]}>{texts.states[row.state]}</Badge>
      {!isTest(row) && row.state === 'failing' && row.next_attempt_at && (
        <div className="small">{texts.nextAttempt(formats.exactTime(row.next_attempt_at))}</div>
      )}
    </>
  )
}

function DeliveryDialog({ row, onClose }: { row: Row; onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { said } = useServiceTexts()
  const delivery = isTest(row) ? null : row
  const { type, message_id, response_status, response, error, duration_ms } = row
  const title = delivery ? texts.delivery(formats.number(delivery.sequence)) : texts.testDelivery
  return (
    <Dialog title={title} onClose={onClose} size="wide">
      <Facts
        facts={[
          [texts.type, type],
          [texts.messageId, <code key="id">{message_id}</code>],
          [texts.attempts, formats.number(attemptsOf(row))],
          [texts.duration, duration_ms === null ? '—' : texts.milliseconds(formats.number(duration_ms))],
          [texts.next, delivery?.next_attempt_at && formats.exactTime(delivery.next_attempt_at)],
        ]}
      />
      {delivery && (
        <>
          <h3>{texts.request}</h3>
          <SentChange sequence={delivery.sequence} />
        </>
      )}
      <h3>
        {texts.response} {response_status}
      </h3>
      <ScrollingText text={response || (error ? said(error) : texts.noResponse)} />
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}

/** The change in the request, read from the log. */
function SentChange({ sequence }: { sequence: number }) {
  const texts = useMessages(messages)
  const change = useQuery({
    queryKey: ['changes', 'one', sequence],
    queryFn: async ({ signal }) =>
      (await client.changes.list({ after: sequence - 1, size: 1, signal }).page()).items[0] ?? null,
    enabled: useScope('changes:read'),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const found = change.data?.sequence === sequence ? JSON.stringify(change.data, undefined, 2) : texts.requestGone
  return <ScrollingText text={change.isLoading ? '…' : found} />
}

function ScrollingText({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the text too
    <pre className={styles.body} tabIndex={0}>
      {text}
    </pre>
  )
}
