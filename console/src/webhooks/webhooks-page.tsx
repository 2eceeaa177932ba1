import type { Webhook } from '@kith/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { client } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Problem } from '../ui/notice.tsx'
import { EmptyState, Loading, Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { WebhookForm } from './webhook-form.tsx'
import { Backlog, WebhookState } from './webhook-state.tsx'
import styles from './webhooks.module.css'

/** The page that lists the webhooks, and makes new ones. */
export function WebhooksPage() {
  const texts = useMessages(messages)
  const mayWrite = useScope('webhooks:write')
  const queryClient = useQueryClient()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const webhooks = useQuery({
    queryKey: ['webhooks'],
    queryFn: ({ signal }) => client.webhooks.list({ signal }).all(),
    refetchInterval: 5_000,
  })
  const createButton = mayWrite && (
    <Button look="primary" onPress={() => setCreating(true)}>
      {texts.create}
    </Button>
  )
  return (
    <Page title={texts.title} subtitle={texts.subtitle} actions={createButton}>
      {webhooks.isPending && <Loading />}
      {webhooks.error && <Problem error={webhooks.error} onRetry={() => webhooks.refetch()} />}
      {webhooks.data?.length === 0 && <EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}
      {webhooks.data && webhooks.data.length > 0 && <WebhookTable webhooks={webhooks.data} />}
      {isCreating && (
        <WebhookForm
          title={texts.create}
          webhook={null}
          action={texts.createAction}
          onClose={() => setCreating(false)}
          onSubmit={async body => {
            const created = await client.webhooks.create(body)
            setCreating(false)
            setSecret(created.secret)
            await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
          }}
        />
      )}
      {secret !== null && (
        <SecretDialog
          title={texts.secretTitle}
          advice={texts.secretAdvice}
          values={[['secret', secret]]}
          onClose={() => setSecret(null)}
        />
      )}
    </Page>
  )
}

function WebhookTable({ webhooks }: { webhooks: Webhook[] }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const headers = [texts.url, texts.events, texts.state, numberHeader(texts.waitingDeliveries), texts.lastSuccess]
  return (
    <Table label={texts.title} headers={headers}>
      {webhooks.map(webhook => (
        <tr key={webhook.id}>
          <th scope="row">
            <Link to="/webhooks/$webhookId" params={{ webhookId: String(webhook.id) }}>
              {webhook.url}
            </Link>
            {webhook.description && <span className={styles.muted!}>{webhook.description}</span>}
          </th>
          <td>{webhook.events.join(', ')}</td>
          <td>
            <WebhookState webhook={webhook} />
          </td>
          <td className={numberCell}>
            <Backlog webhook={webhook} />
          </td>
          <td>{webhook.last_success_at ? formats.relative(webhook.last_success_at) : texts.never}</td>
        </tr>
      ))}
    </Table>
  )
}
