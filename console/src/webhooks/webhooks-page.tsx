import type { Webhook, WebhookBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { EmptyState, Loading, Page, Problem } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { webhooksKey, webhooksQuery } from './queries.ts'
import { WebhookForm } from './webhook-form.tsx'
import { Backlog, WebhookState } from './webhook-state.tsx'
import styles from './webhooks.module.css'

/** The page that lists the webhooks, and makes new ones. */
export function WebhooksPage() {
  const texts = useMessages(messages)
  const mayWrite = useScope('webhooks:write')
  const [isCreating, setCreating] = useState(false)
  const webhooks = useQuery({ ...webhooksQuery, refetchInterval: 5_000 })
  const create = useWrite((body: WebhookBody) => client.webhooks.create(body), {
    refresh: [webhooksKey],
    onSuccess: () => setCreating(false),
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
          onClose={() => {
            create.reset()
            setCreating(false)
          }}
          write={create}
        />
      )}
      {create.data && (
        <SecretDialog
          title={texts.secretTitle}
          advice={texts.secretAdvice}
          values={[['secret', create.data.secret]]}
          onClose={create.reset}
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
            {webhook.description && <span className={styles.muted}>{webhook.description}</span>}
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
