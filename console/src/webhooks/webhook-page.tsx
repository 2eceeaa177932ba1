import type { Webhook, WebhookTest } from '@kith/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/notice.tsx'
import { Facts, Loading, Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Deliveries } from './deliveries.tsx'
import { messages } from './messages.ts'
import { WebhookForm } from './webhook-form.tsx'
import { Backlog, WebhookState } from './webhook-state.tsx'

/** The page of a webhook: what it sends, how far it is, and its deliveries. */
export function WebhookPage() {
  const texts = useMessages(messages)
  const { webhookId } = useParams({ strict: false }) as { webhookId: string }
  const id = Number(webhookId)
  const mayWrite = useScope('webhooks:write')
  const webhook = useQuery({
    queryKey: ['webhooks', id],
    queryFn: ({ signal }) => client.webhooks.get(id, { signal }),
    refetchInterval: 5_000,
  })
  if (webhook.isPending) return <Loading />
  if (!webhook.data)
    return (
      <Page title={texts.title}>
        <Problem error={webhook.error} onRetry={() => webhook.refetch()} />
      </Page>
    )
  return (
    <Page title={webhook.data.url} subtitle={webhook.data.description}>
      {mayWrite && <WebhookActions webhook={webhook.data} />}
      <WebhookFacts webhook={webhook.data} />
      <Deliveries webhook={webhook.data} />
    </Page>
  )
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { backlog } = webhook
  return (
    <Facts
      facts={[
        [texts.state, <WebhookState key="state" webhook={webhook} />],
        [texts.events, webhook.events.join(', ')],
        ...(webhook.stacks ? [[texts.stacks, webhook.stacks.join(', ')] as const] : []),
        ...(webhook.keys ? [[texts.keys, webhook.keys.join(', ')] as const] : []),
        [texts.payload, webhook.payload === 'full' ? texts.payloadFull : texts.payloadIds],
        [texts.waitingDeliveries, <Backlog key="backlog" webhook={webhook} />],
        ...(backlog.changes > 0 ? [[texts.unseen, formats.number(backlog.changes)] as const] : []),
        [texts.lastSuccess, webhook.last_success_at ? formats.exactTime(webhook.last_success_at) : texts.never],
      ]}
    />
  )
}

/** The dialog that is open over the page, or null. */
type Overlay = { kind: 'edit' } | { kind: 'remove' } | { kind: 'secret'; secret: string } | null

function WebhookActions({ webhook }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const navigate = useNavigate()
  const queryClient = useQueryClient()
  const [overlay, setOverlay] = useState<Overlay>(null)
  const [error, setError] = useState<unknown>()
  const [test, setTest] = useState<WebhookTest | null>(null)
  const { id, active, url } = webhook
  const attempt = async (work: () => Promise<void>) => {
    setError(undefined)
    setTest(null)
    await work().catch(setError)
    await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
  }
  const update = (body: Parameters<typeof client.webhooks.update>[1]) =>
    client.webhooks.update(id, body).then(() => setOverlay(null))
  const rotate = () =>
    attempt(async () => setOverlay({ kind: 'secret', secret: (await client.webhooks.rotate(id)).secret }))
  const remove = () =>
    attempt(async () => {
      await client.webhooks.delete(id)
      await navigate({ to: '/webhooks' })
    })
  return (
    <>
      <Actions>
        <Button onPress={() => attempt(async () => setTest(await client.webhooks.test(id)))}>{texts.test}</Button>
        <Button onPress={() => attempt(() => update({ active: !active }))}>{active ? texts.pause : texts.goOn}</Button>
        <Button onPress={rotate}>{texts.rotate}</Button>
        <Button look="danger" onPress={() => setOverlay({ kind: 'remove' })}>
          {texts.remove}
        </Button>
        <Button onPress={() => setOverlay({ kind: 'edit' })}>{texts.edit}</Button>
      </Actions>
      {error !== undefined && <Problem error={error} />}
      {test && <TestOutcome test={test} />}
      {overlay?.kind === 'edit' && (
        <WebhookForm
          title={url}
          webhook={webhook}
          action={texts.save}
          onClose={() => setOverlay(null)}
          onSubmit={async body => {
            await update(body)
            await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
          }}
        />
      )}
      {overlay?.kind === 'secret' && (
        <SecretDialog
          title={texts.secretTitle}
          advice={texts.secretAdvice}
          values={[['secret', overlay.secret]]}
          onClose={() => setOverlay(null)}
        />
      )}
      {overlay?.kind === 'remove' && (
        <Dialog title={texts.removeTitle} isOpen isAlert onClose={() => setOverlay(null)}>
          <p>{texts.removeAdvice}</p>
          <Actions>
            <Button onPress={() => setOverlay(null)} autoFocus>
              {texts.cancel}
            </Button>
            <Button look="danger" onPress={remove}>
              {texts.remove}
            </Button>
          </Actions>
        </Dialog>
      )}
    </>
  )
}

function TestOutcome({ test: { delivered, response_status, error, response } }: { test: WebhookTest }) {
  const texts = useMessages(messages)
  if (delivered) return <Notice kind="success" title={texts.testDelivered(response_status!)} />
  return (
    <Notice kind="error" title={texts.testFailed(error ?? String(response_status))}>
      {response && <p>{response}</p>}
    </Notice>
  )
}
