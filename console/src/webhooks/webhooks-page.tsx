import type { Webhook, WebhookBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { Button } from '../ui/button.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { EmptyState, Page } from '../ui/page.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { webhooksKey, webhooksQuery } from './queries.ts'
import { WebhookForm } from './webhook-form.tsx'
import { Backlog, WebhookState } from './webhook-state.tsx'

/** The page that lists and creates webhooks. */
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
      {texts.newWebhook}
    </Button>
  )
  return (
    <Page title={texts.webhooks} subtitle={texts.subtitle} actions={createButton}>
      <Loaded query={webhooks} none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}>
        {rows => <WebhookTable webhooks={rows} />}
      </Loaded>
      {isCreating && (
        <WebhookForm
          title={texts.newWebhook}
          webhook={null}
          action={texts.create}
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
  return (
    <ColumnTable
      label={texts.webhooks}
      rows={webhooks}
      rowKey={({ id }) => id}
      columns={[
        [
          texts.url,
          ({ id, url, description }) => (
            <>
              <Link to="/webhooks/$webhookId" params={{ webhookId: String(id) }}>
                {url}
              </Link>
              {description && <div className="small">{description}</div>}
            </>
          ),
          'name',
        ],
        [texts.events, ({ events }) => events.join(', ')],
        [texts.state, webhook => <WebhookState webhook={webhook} />],
        [texts.waitingDeliveries, webhook => <Backlog webhook={webhook} />, 'number'],
        [texts.lastSuccess, ({ last_success_at: at }) => (at ? formats.relative(at) : texts.never)],
      ]}
    />
  )
}
