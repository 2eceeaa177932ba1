import type { Webhook, WebhookTest } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { useServiceTexts } from '../app/use-service-texts.ts'
import { Button } from '../ui/button.tsx'
import { Actions, ConfirmDialog } from '../ui/dialog.tsx'
import { Facts, Loading, Notice, Page, Problem } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Deliveries } from './deliveries.tsx'
import { messages } from './messages.ts'
import { webhookQuery, webhooksKey, webhooksQuery } from './queries.ts'
import { WebhookForm } from './webhook-form.tsx'
import { Backlog, WebhookState } from './webhook-state.tsx'

/** The page of a webhook: its settings, its progress, and its deliveries. */
export function WebhookPage() {
  const texts = useMessages(messages)
  const { webhookId } = useParams({ strict: false }) as { webhookId: string }
  const id = Number(webhookId)
  const mayWrite = useScope('webhooks:write')
  const webhook = useQuery({ ...webhookQuery(id), refetchInterval: 5_000 })
  if (webhook.isPending) return <Loading />
  if (!webhook.data)
    return (
      <Page title={texts.webhooks}>
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
        [texts.stacks, webhook.stacks?.join(', ')],
        [texts.keys, webhook.keys?.join(', ')],
        [texts.headers, webhook.headers.join(', ')],
        [texts.payload, texts[contentOf(webhook)]],
        [texts.waitingDeliveries, <Backlog key="backlog" webhook={webhook} />],
        [texts.unseen, backlog.changes > 0 && formats.number(backlog.changes)],
        [texts.lastSuccess, webhook.last_success_at ? formats.exactTime(webhook.last_success_at) : texts.never],
      ]}
    />
  )
}

function contentOf({ payload, links }: Webhook) {
  if (payload === 'ids') return 'payloadIds'
  return links ? 'payloadLinks' : 'payloadFull'
}

type WebhookChange = Parameters<typeof client.webhooks.update>[1]

function WebhookActions({ webhook }: { webhook: Webhook }) {
  const texts = useMessages(messages)
  const navigate = useNavigateAfter()
  const [overlay, setOverlay] = useState<'edit' | 'remove'>()
  const { id, active, url } = webhook
  const close = () => setOverlay(undefined)
  const refresh = [webhooksKey]
  const update = useWrite((body: WebhookChange) => client.webhooks.update(id, body), { refresh, onSuccess: close })
  const test = useWrite(() => client.webhooks.test(id), { refresh })
  const rotate = useWrite(() => client.webhooks.rotate(id), { refresh })
  const remove = useWrite(() => client.webhooks.delete(id), {
    onSuccess: () => navigate({ to: '/webhooks' }),
    refresh: [webhooksQuery.queryKey],
  })
  const error = test.error ?? rotate.error ?? (overlay ? undefined : update.error)
  return (
    <>
      <Actions>
        <Button onPress={() => test.mutate()} isPending={test.isPending}>
          {texts.test}
        </Button>
        <Button onPress={() => update.mutate({ active: !active })}>{active ? texts.pause : texts.goOn}</Button>
        <Button onPress={() => rotate.mutate()}>{texts.rotate}</Button>
        <Button look="danger" onPress={() => setOverlay('remove')}>
          {texts.delete}
        </Button>
        <Button onPress={() => setOverlay('edit')}>{texts.edit}</Button>
      </Actions>
      {error && <Problem error={error} />}
      {test.data && <TestOutcome test={test.data} />}
      {overlay === 'edit' && (
        <WebhookForm title={url} webhook={webhook} action={texts.save} write={update} onClose={close} />
      )}
      {rotate.data && (
        <SecretDialog
          title={texts.secretTitle}
          advice={texts.secretAdvice}
          values={[['secret', rotate.data.secret]]}
          onClose={rotate.reset}
        />
      )}
      {overlay === 'remove' && (
        <ConfirmDialog title={texts.removeTitle} action={texts.delete} write={remove} onClose={close}>
          <p>{texts.removeAdvice}</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function TestOutcome({ test: { delivered, response_status, error, response } }: { test: WebhookTest }) {
  const texts = useMessages(messages)
  const { said } = useServiceTexts()
  if (delivered) return <Notice kind="success" title={texts.testDelivered(response_status!)} />
  return (
    <Notice kind="error" title={texts.testFailed(error === null ? String(response_status) : said(error))}>
      {response && <p>{response}</p>}
    </Notice>
  )
}
