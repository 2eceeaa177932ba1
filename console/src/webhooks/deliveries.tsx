import type { Webhook, WebhookDelivery } from '@kith/client'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Select } from '../ui/field.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Badge, EmptyState, Facts, Loading, Section } from '../ui/page.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import styles from './webhooks.module.css'

type Status = WebhookDelivery['status']
const kinds = { waiting: 'caution', delivered: 'positive', failed: 'negative' } as const

/** The deliveries of a webhook, newest first. One can be looked at and sent again. */
export function Deliveries({ webhook: { id } }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const mayWrite = useScope('webhooks:write')
  const queryClient = useQueryClient()
  const [status, setStatus] = useState<Status | ''>('')
  const [shown, setShown] = useState<WebhookDelivery | null>(null)
  const [sent, setSent] = useState<number | null>(null)
  const [error, setError] = useState<unknown>()
  const deliveries = useInfiniteQuery({
    queryKey: ['webhooks', id, 'deliveries', status],
    queryFn: ({ pageParam, signal }) =>
      client.webhooks.deliveries(id, { signal, ...(status && { status }), ...(pageParam && { before: pageParam }) }),
    initialPageParam: 0,
    getNextPageParam: page => (page.has_more ? page.items.at(-1)!.sequence : undefined),
    refetchInterval: 5_000,
  })
  const sendAgain = async ({ sequence }: WebhookDelivery) => {
    setError(undefined)
    try {
      await client.webhooks.replay(id, { after: sequence - 1, until: sequence })
      setSent(sequence)
      await queryClient.invalidateQueries({ queryKey: ['webhooks', id] })
    } catch (error) {
      setError(error)
    }
  }
  const rows = deliveries.data?.pages.flatMap(page => page.items) ?? []
  return (
    <Section
      title={texts.deliveries}
      actions={
        <div className={styles.status!}>
          <Select<Status | ''>
            aria-label={texts.state}
            options={[
              { value: '', label: texts.all },
              { value: 'waiting', label: texts.waiting },
              { value: 'delivered', label: texts.delivered },
              { value: 'failed', label: texts.failed },
            ]}
            value={status}
            onChange={setStatus}
          />
        </div>
      }
    >
      {sent !== null && <Notice kind="success" title={texts.sentAgain(formats.number(sent))} />}
      {error !== undefined && <Problem error={error} />}
      {deliveries.error && <Problem error={deliveries.error} onRetry={() => deliveries.refetch()} />}
      {deliveries.isPending && <Loading />}
      {deliveries.data && rows.length === 0 && (
        <EmptyState title={texts.noDeliveries}>{texts.noDeliveriesAdvice}</EmptyState>
      )}
      {rows.length > 0 && <DeliveryTable rows={rows} onShow={setShown} onSendAgain={mayWrite ? sendAgain : null} />}
      {deliveries.hasNextPage && (
        <div>
          <Button onPress={() => deliveries.fetchNextPage()}>{texts.more}</Button>
        </div>
      )}
      {shown && <DeliveryDialog delivery={shown} onClose={() => setShown(null)} />}
    </Section>
  )
}

function DeliveryTable({
  rows,
  onShow,
  onSendAgain,
}: {
  rows: WebhookDelivery[]
  onShow: (delivery: WebhookDelivery) => void
  onSendAgain: ((delivery: WebhookDelivery) => void) | null
}) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const headers = [
    numberHeader(texts.change),
    texts.type,
    texts.state,
    numberHeader(texts.attempts),
    texts.response,
    texts.when,
    texts.details,
  ]
  return (
    <Table label={texts.deliveries} headers={headers}>
      {rows.map(delivery => {
        const { sequence, type, status, attempts, response_status, error, last_attempt_at } = delivery
        return (
          <tr key={delivery.message_id}>
            <td className={numberCell}>{formats.number(sequence)}</td>
            <td>{type}</td>
            <td>
              <Badge kind={kinds[status]}>{texts[status]}</Badge>
            </td>
            <td className={numberCell}>{formats.number(attempts)}</td>
            <td>{response_status ?? error ?? '—'}</td>
            <td>{last_attempt_at ? formats.exactTime(last_attempt_at) : '—'}</td>
            <td>
              <div className={styles.buttons!}>
                <Button aria-label={texts.show(formats.number(sequence))} onPress={() => onShow(delivery)}>
                  {texts.details}
                </Button>
                {onSendAgain && (
                  <Button
                    aria-label={`${texts.sendAgain}: ${formats.number(sequence)}`}
                    onPress={() => onSendAgain(delivery)}
                  >
                    {texts.sendAgain}
                  </Button>
                )}
              </div>
            </td>
          </tr>
        )
      })}
    </Table>
  )
}

function DeliveryDialog({ delivery, onClose }: { delivery: WebhookDelivery; onClose: () => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { sequence, type, message_id, attempts, response_status, response, error, duration_ms } = delivery
  return (
    <Dialog title={texts.delivery(formats.number(sequence))} isOpen onClose={onClose} size="wide">
      <Facts
        facts={[
          [texts.type, type],
          [texts.messageId, <code key="id">{message_id}</code>],
          [texts.attempts, formats.number(attempts)],
          [texts.duration, duration_ms === null ? '—' : texts.milliseconds(formats.number(duration_ms))],
          ...(delivery.next_attempt_at ? [[texts.next, formats.exactTime(delivery.next_attempt_at)] as const] : []),
        ]}
      />
      <h3>{texts.request}</h3>
      <SentChange sequence={sequence} />
      <h3>
        {texts.response} {response_status}
      </h3>
      <ScrollingText text={response || error || texts.noResponse} />
      <Actions>
        <Button onPress={onClose} autoFocus>
          {texts.close}
        </Button>
      </Actions>
    </Dialog>
  )
}

/** The change that the request told of, read from the log. */
function SentChange({ sequence }: { sequence: number }) {
  const texts = useMessages(messages)
  const change = useQuery({
    queryKey: ['changes', 'one', sequence],
    queryFn: async ({ signal }) =>
      (await client.changes.list({ after: sequence - 1, limit: 1, signal })).items[0] ?? null,
    enabled: useScope('changes:read'),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const found = change.data?.sequence === sequence ? JSON.stringify(change.data, undefined, 2) : texts.requestGone
  return <ScrollingText text={change.isLoading ? '…' : found} />
}

function ScrollingText({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the text too
    <pre className={styles.body!} tabIndex={0}>
      {text}
    </pre>
  )
}
